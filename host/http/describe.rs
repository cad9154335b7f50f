//! What takes part in an operation of the OpenAPI document: the arguments of a handler and its
//! answer, each of which describes itself.

use axum::{Extension, extract::State, http::HeaderMap};

use super::{Caller, Get, Run, openapi::Operation, query::Takes};
use crate::error::Result;

/// What takes part in an operation: an argument of its handler, or its answer.
pub trait Describe {
    fn describe(operation: &mut Operation<'_>);

    /// Whether it reads a query parameter of this name.
    #[must_use]
    fn takes(_parameter: &str) -> bool {
        false
    }
}

/// A handler whose arguments and answer describe themselves.
pub trait Described<Arguments> {
    fn describe(operation: &mut Operation<'_>);

    /// Whether one of the arguments reads a query parameter of this name.
    fn takes(parameter: &str) -> bool;
}

/// What is kept of a handler beside itself.
pub type Description = fn(&mut Operation<'_>);

#[must_use]
pub fn description<Handler: Described<Arguments>, Arguments>(_: &Handler) -> Description {
    Handler::describe
}

#[must_use]
pub fn takes<Handler: Described<Arguments>, Arguments>(_: &Handler) -> Takes {
    Handler::takes
}

macro_rules! described {
    ($($argument:ident)*) => {
        impl<Handler, Answering, Answer, $($argument),*> Described<($($argument,)*)> for Handler
        where
            Handler: Fn($($argument),*) -> Answering,
            Answering: Future<Output = Answer>,
            Answer: Describe,
            $($argument: Describe),*
        {
            fn describe(operation: &mut Operation<'_>) {
                $($argument::describe(operation);)*
                Answer::describe(operation);
            }

            fn takes(parameter: &str) -> bool {
                let takes: &[Takes] = &[$($argument::takes),*];
                takes.iter().any(|takes| takes(parameter))
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

/// Arguments that callers do not see.
macro_rules! unseen {
    ($($argument:ident $(<$parameter:ident>)?),*) => {
        $(impl $(<$parameter>)? Describe for $argument $(<$parameter>)? {
            fn describe(_: &mut Operation<'_>) {}
        })*
    };
}

unseen!(State<T>, Extension<T>, HeaderMap, Caller, Get, Run);

impl<Answer: Describe> Describe for Result<Answer> {
    fn describe(operation: &mut Operation<'_>) {
        Answer::describe(operation);
    }
}
