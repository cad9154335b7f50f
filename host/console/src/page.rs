//! Shared parts of all pages: frame, errors, headers.

use askama::Template;
use axum::{
    extract::Request,
    http::{HeaderValue, StatusCode, Uri, header},
    middleware::Next,
    response::{Html, IntoResponse, Redirect, Response},
};
use url::form_urlencoded;

use crate::{
    api::ApiFailure,
    session::{Me, Session},
};

/// Only what this host serves: no inline scripts or styles, no other site, no frames.
const CONTENT_POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; \
     img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; \
     frame-ancestors 'none'";

/// An entry of the navigation.
pub struct NavigationItem {
    pub href: &'static str,
    pub label: &'static str,
    /// The permission without which the entry is omitted; empty: everyone sees it.
    permission: &'static str,
}

const NAVIGATION: &[NavigationItem] = &[
    NavigationItem { href: "/console", label: "Search", permission: "" },
    NavigationItem { href: "/console/today", label: "Today", permission: "refunds.read" },
    NavigationItem { href: "/console/companies", label: "Companies", permission: "companies.read" },
    NavigationItem { href: "/console/refunds", label: "Refunds", permission: "refunds.read" },
    NavigationItem { href: "/console/exceptions", label: "Exceptions", permission: "refunds.read" },
    NavigationItem { href: "/console/totals", label: "Totals", permission: "wallet.read" },
    NavigationItem { href: "/console/jobs", label: "Jobs", permission: "jobs.read" },
    NavigationItem { href: "/console/plugins", label: "Plugins", permission: "plugins.read" },
    NavigationItem { href: "/console/approvals", label: "Approvals", permission: "approvals.read" },
    NavigationItem { href: "/console/operators", label: "Operators", permission: "operators.read" },
    NavigationItem { href: "/console/audit", label: "Audit log", permission: "audit.read" },
];

/// The frame of a page: its title, the navigation, and the person.
pub struct Frame {
    pub title: String,
    /// The entry of the navigation to which the page belongs.
    pub section: &'static str,
    /// `None` before the sign-in.
    pub me: Option<Me>,
    pub form_token: String,
}

impl Frame {
    pub fn new(session: &Session, section: &'static str, title: impl Into<String>) -> Frame {
        let (me, form_token) = (Some(session.me.clone()), session.form_token());
        Frame { title: title.into(), section, me, form_token }
    }

    pub fn signed_out(title: &str) -> Frame {
        Frame { title: title.to_owned(), section: "", me: None, form_token: String::new() }
    }

    /// Returns the entries that the person may use.
    pub fn items(&self) -> Vec<&'static NavigationItem> {
        let may = |item: &&NavigationItem| {
            // The lists of the service are not for a person who is limited to companies.
            let is_open = |me: &Me| me.companies.is_none() && me.may(item.permission);
            let may = |me: &Me| item.permission.is_empty() || is_open(me);
            self.me.as_ref().is_some_and(may)
        };
        NAVIGATION.iter().filter(may).collect()
    }
}

pub type PageResult = Result<Response, PageError>;

/// Renders a page.
pub fn render(page: &impl Template) -> PageResult {
    let html = page.render().map_err(|error| {
        tracing::error!(%error, "a page could not be rendered");
        PageError::from(ApiFailure::internal())
    })?;
    Ok(Html(html).into_response())
}

/// A page that cannot be shown.
#[derive(Debug)]
pub enum PageError {
    /// The person must sign in first, and continues at the path.
    SignIn {
        next: String,
    },
    Failed {
        status: StatusCode,
        message: String,
    },
}

impl PageError {
    pub fn sign_in(uri: &Uri) -> PageError {
        let next = uri.path_and_query().map_or("/console", |path| path.as_str());
        PageError::SignIn { next: next.to_owned() }
    }

    pub fn forbidden(message: &str) -> PageError {
        PageError::Failed { status: StatusCode::FORBIDDEN, message: message.to_owned() }
    }

    /// Converts a failure of a page, which needs a new sign-in if the session has ended.
    pub fn of_page(failure: ApiFailure, uri: &Uri) -> PageError {
        match failure.status {
            StatusCode::UNAUTHORIZED => PageError::sign_in(uri),
            _ => failure.into(),
        }
    }
}

impl From<ApiFailure> for PageError {
    fn from(ApiFailure { status, message }: ApiFailure) -> PageError {
        match status {
            StatusCode::UNAUTHORIZED => PageError::SignIn { next: "/console".to_owned() },
            status => PageError::Failed { status, message },
        }
    }
}

#[derive(Template)]
#[template(path = "error.html")]
struct ErrorPage {
    frame: Frame,
    message: String,
}

impl IntoResponse for PageError {
    fn into_response(self) -> Response {
        match self {
            PageError::SignIn { next } => {
                let next: String = form_urlencoded::byte_serialize(next.as_bytes()).collect();
                Redirect::to(&format!("/console/sign-in?next={next}")).into_response()
            }
            PageError::Failed { status, message } => {
                let title = status.canonical_reason().unwrap_or("Error");
                let page = ErrorPage { frame: Frame::signed_out(title), message };
                let html = page.render().map(Html).map_err(|error| {
                    tracing::error!(%error, "the page of an error could not be rendered");
                    page.message
                });
                (status, html).into_response()
            }
        }
    }
}

pub async fn not_found() -> PageError {
    let message = "There is no such page.".to_owned();
    PageError::Failed { status: StatusCode::NOT_FOUND, message }
}

/// Adds the headers of every page.
pub async fn apply_policy(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, CONTENT_POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "same-origin"),
        (header::X_FRAME_OPTIONS, "DENY"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}
