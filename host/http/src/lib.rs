//! HTTP: reads requests, describes and serves routes. Generic over the application and its routes.
//!
//! The pipeline of a request is `server/pipeline.rs`: access, concurrency permit, rate, body,
//! `Idempotency-Key`. Conversion of errors to HTTP is in one place (`tollhouse_platform::error`).

pub mod describe;
pub mod idempotency;
pub mod listener;
pub mod openapi;
pub mod pages;
pub mod request;
pub mod response;
pub mod route;
pub mod server;
pub mod settings;

pub use self::{
    idempotency::header::IdempotentRequest,
    listener::{
        Endpoint, ListenError, Listener, connection_limit_key,
        tls::{Tls, TlsFiles},
        wait_for_stop,
    },
    pages::PageGate,
    request::get::GetOnly,
    route::{ANY_OPERATOR, Access, ErasedHandler, Permission, Route},
    server::{
        Server,
        auth::{ClientAddress, CompanyCall, OperatorCall, Principals, RequestOrigin},
        health::Readiness,
        request_log::{CompletedRequest, RequestRecorder},
        router::{Interface, router},
    },
    settings::requests::ServerLimits,
};
