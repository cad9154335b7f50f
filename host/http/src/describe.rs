//! Self-description of handlers for the OpenAPI document, by their arguments and responses.

use axum::{Extension, extract::State, http::HeaderMap};

use super::{GetOnly, IdempotentRequest, openapi::Operation};
use tollhouse_platform::error::Result;

/// A part of an operation: an argument of its handler, or its response.
pub trait Describe {
    fn describe(operation: &mut Operation<'_>);
}

/// A handler whose arguments and response describe themselves.
pub trait Described<Arguments> {
    fn describe(operation: &mut Operation<'_>);
}

/// The function that describes the operation of a handler.
pub type Description = fn(&mut Operation<'_>);

#[must_use]
pub fn description<Handler: Described<Arguments>, Arguments>(_: &Handler) -> Description {
    Handler::describe
}

macro_rules! described {
    ($($argument:ident)*) => {
        impl<Handler, HandlerFuture, HandlerResponse, $($argument),*> Described<($($argument,)*)>
            for Handler
        where
            Handler: Fn($($argument),*) -> HandlerFuture,
            HandlerFuture: Future<Output = HandlerResponse>,
            HandlerResponse: Describe,
            $($argument: Describe),*
        {
            fn describe(operation: &mut Operation<'_>) {
                $($argument::describe(operation);)*
                HandlerResponse::describe(operation);
            }
        }
    };
}

described!();
described!(A);
described!(A B);
described!(A B C);
described!(A B C D);
described!(A B C D E);

/// Arguments that clients do not see.
macro_rules! unseen {
    ($($argument:ident $(<$parameter:ident>)?),*) => {
        $(impl $(<$parameter>)? Describe for $argument $(<$parameter>)? {
            fn describe(_: &mut Operation<'_>) {}
        })*
    };
}

unseen!(State<T>, Extension<T>, HeaderMap, GetOnly, IdempotentRequest);

impl<HandlerResponse: Describe> Describe for Result<HandlerResponse> {
    fn describe(operation: &mut Operation<'_>) {
        HandlerResponse::describe(operation);
    }
}
