//! Shared parts of all pages: frame, errors, headers.

use askama::Template;
use axum::{
    Extension,
    extract::{Request, State},
    http::{HeaderValue, Method, StatusCode, header},
    middleware::Next,
    response::{Html, IntoResponse, Redirect, Response},
};

use crate::{
    api::ApiFailure,
    session::{Me, Session},
    site::Site,
};

/// Only what this host serves: no inline scripts or styles, no other site, no frames.
const CONTENT_POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; \
     img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; \
     frame-ancestors 'none'";

/// An entry of the navigation.
pub struct NavigationItem {
    /// Path under the root of the site.
    pub path: &'static str,
    pub label: &'static str,
    /// The permission without which the entry is omitted; empty: everyone sees it.
    permission: &'static str,
}

const NAVIGATION: &[NavigationItem] = &[
    NavigationItem { path: "", label: "Search", permission: "" },
    NavigationItem { path: "/today", label: "Today", permission: "refunds.read" },
    NavigationItem { path: "/companies", label: "Companies", permission: "companies.read" },
    NavigationItem { path: "/refunds", label: "Refunds", permission: "refunds.read" },
    NavigationItem { path: "/exceptions", label: "Exceptions", permission: "refunds.read" },
    NavigationItem { path: "/totals", label: "Totals", permission: "wallet.read" },
    NavigationItem { path: "/jobs", label: "Jobs", permission: "jobs.read" },
    NavigationItem { path: "/plugins", label: "Plugins", permission: "plugins.read" },
    NavigationItem { path: "/approvals", label: "Approvals", permission: "approvals.read" },
    NavigationItem { path: "/operators", label: "Operators", permission: "operators.read" },
    NavigationItem { path: "/audit", label: "Audit log", permission: "audit.read" },
];

/// The frame of a page: its title, the navigation, and the person.
pub struct Frame {
    pub title: String,
    /// The path of the site's first page.
    pub root: &'static str,
    /// The entry of the navigation to which the page belongs.
    pub section: &'static str,
    /// `None` before the sign-in.
    pub me: Option<Me>,
    pub form_token: String,
}

impl Frame {
    pub fn new(session: &Session, section: &'static str, title: impl Into<String>) -> Frame {
        let (me, form_token) = (Some(session.me.clone()), session.form_token());
        Frame { title: title.into(), root: session.site().root(), section, me, form_token }
    }

    pub fn signed_out(site: Site, title: &str) -> Frame {
        let (title, root) = (title.to_owned(), site.root());
        Frame { title, root, section: "", me: None, form_token: String::new() }
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

/// A page that cannot be shown. [`finish`] renders it.
#[derive(Clone, Debug)]
pub enum PageError {
    /// The person must sign in first.
    SignIn,
    Failed {
        status: StatusCode,
        message: String,
    },
}

impl PageError {
    pub fn forbidden(message: &str) -> PageError {
        PageError::Failed { status: StatusCode::FORBIDDEN, message: message.to_owned() }
    }
}

impl From<ApiFailure> for PageError {
    fn from(ApiFailure { status, message }: ApiFailure) -> PageError {
        match status {
            StatusCode::UNAUTHORIZED => PageError::SignIn,
            status => PageError::Failed { status, message },
        }
    }
}

impl IntoResponse for PageError {
    fn into_response(self) -> Response {
        (StatusCode::INTERNAL_SERVER_ERROR, Extension(self)).into_response()
    }
}

#[derive(Template)]
#[template(path = "error.html")]
struct ErrorPage {
    frame: Frame,
    message: String,
}

/// Renders an error. After the sign-in, the person continues at `next`.
fn render_error(error: PageError, site: Site, next: &str) -> Response {
    match error {
        PageError::SignIn => {
            Redirect::to(&site.href(&["sign-in"], &[("next", next)])).into_response()
        }
        PageError::Failed { status, message } => {
            let title = status.canonical_reason().unwrap_or("Error");
            let page = ErrorPage { frame: Frame::signed_out(site, title), message };
            let html = page.render().map(Html).map_err(|error| {
                tracing::error!(%error, "the page of an error could not be rendered");
                page.message
            });
            (status, html).into_response()
        }
    }
}

pub async fn not_found() -> PageError {
    let message = "There is no such page.".to_owned();
    PageError::Failed { status: StatusCode::NOT_FOUND, message }
}

/// Renders errors, and adds the headers of every page.
pub async fn finish(State(site): State<Site>, request: Request, next: Next) -> Response {
    let own = match *request.method() {
        Method::GET => request.uri().path_and_query().map_or("", |path| path.as_str()).to_owned(),
        // A form cannot be continued after the sign-in.
        _ => site.root().to_owned(),
    };
    let mut response = next.run(request).await;
    if let Some(error) = response.extensions_mut().remove::<PageError>() {
        response = render_error(error, site, &own);
    }
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
