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
    api::{self, ApiFailure},
    session::{Me, Session},
    site::Site,
};
use tollhouse_http::PageGate;

/// Only what this host serves: no inline scripts or styles, no other site, no frames.
const CONTENT_POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; \
     img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; \
     frame-ancestors 'none'";

/// A link of the navigation.
pub struct NavigationItem {
    pub href: String,
    pub label: &'static str,
    pub is_current: bool,
}

/// The path of a page, its label, and the permission without which it is omitted; empty: everyone
/// sees it.
type Destination = (&'static str, &'static str, &'static str);

/// The pages of the service.
const SERVICE: &[Destination] = &[
    ("", "Search", ""),
    ("today", "Today", "refunds.read"),
    ("companies", "Companies", "companies.read"),
    ("refunds", "Refunds", "refunds.read"),
    ("disputes", "Disputes", "refunds.read"),
    ("exceptions", "Exceptions", "refunds.read"),
    ("reconciliation", "Reconciliation", "refunds.read"),
    ("totals", "Totals", "wallet.read"),
    ("jobs", "Jobs", "jobs.read"),
    ("plugins", "Plugins", "plugins.read"),
    ("hosts", "Hosts", "hosts.read"),
    ("master-key", "Master key", "master_key.read"),
    ("approvals", "Approvals", "approvals.read"),
    ("operators", "Operators", "operators.read"),
    ("audit", "Audit log", "audit.read"),
];

/// The pages of a company.
const COMPANY: &[Destination] = &[
    ("", "Overview", "companies.read"),
    ("users", "Customers", "users.read"),
    ("payments", "Payments", "payments.read"),
    ("routing", "Routing", "companies.read"),
    ("recollections", "Repayments", "lending.read"),
    ("collection-policy", "Collection policy", "companies.read"),
    ("disputes", "Disputes", "refunds.read"),
    ("reconciliation", "Reconciliation", "refunds.read"),
    ("messages", "Messages", "messages.read"),
    ("events", "Events", "events.read"),
    ("requests", "API log", "requests.read"),
    ("endpoints", "Event endpoints", "companies.read"),
    ("keys", "API keys", "companies.read"),
    ("wallet", "Wallet", "wallet.read"),
    ("statement", "Statement", "wallet.read"),
    ("totals", "Totals", "wallet.read"),
    ("members", "Team", "members.read"),
    ("audit", "Audit log", "audit.read"),
];

/// Returns the links that the person may use. `under` is the path of the pages.
fn navigation(
    session: &Session,
    destinations: &[Destination],
    under: &[&str],
    current: &str,
) -> Vec<NavigationItem> {
    let may =
        |&&(_, _, permission): &&Destination| permission.is_empty() || session.me.may(permission);
    let item = |&(page, label, _): &Destination| {
        let path = if page.is_empty() { under.to_vec() } else { [under, &[page]].concat() };
        NavigationItem { href: session.href(&path, &[]), label, is_current: label == current }
    };
    destinations.iter().filter(may).map(item).collect()
}

/// The frame of a page: its title, the navigation, and the person.
pub struct Frame {
    pub title: String,
    /// The path of the site's first page.
    pub root: &'static str,
    pub navigation: Vec<NavigationItem>,
    /// The other pages of a company.
    pub tabs: Vec<NavigationItem>,
    /// `None` before the sign-in.
    pub me: Option<Me>,
    pub form_token: String,
}

impl Frame {
    /// Returns the frame of a page of the service. `section` is its label in the navigation.
    pub fn new(session: &Session, section: &str, title: impl Into<String>) -> Frame {
        // The lists of the service are not for a person who is limited to companies.
        let most = if session.me.companies.is_none() { SERVICE.len() } else { 1 };
        Frame {
            title: title.into(),
            root: session.site().root(),
            navigation: navigation(session, &SERVICE[..most], &[], section),
            tabs: Vec::new(),
            me: Some(session.me.clone()),
            form_token: session.form_token(),
        }
    }

    /// Returns the frame of a page of a company. `tab` is its label among the company's pages.
    pub fn of_company(
        session: &Session,
        company: &str,
        tab: &str,
        title: impl Into<String>,
    ) -> Frame {
        let tabs = navigation(session, COMPANY, &["companies", company], tab);
        let frame = Frame::new(session, "Companies", title);
        match session.site() {
            Site::Console => Frame { tabs, ..frame },
            Site::Portal => Frame { navigation: tabs, ..frame },
        }
    }

    pub fn signed_out(site: Site, title: &str) -> Frame {
        Frame {
            title: title.to_owned(),
            root: site.root(),
            navigation: Vec::new(),
            tabs: Vec::new(),
            me: None,
            form_token: String::new(),
        }
    }
}

/// Returns the first page of a company that the person may see.
pub fn first_page(session: &Session, company: &str) -> Option<String> {
    let pages = navigation(session, COMPANY, &["companies", company], "");
    pages.into_iter().next().map(|first| first.href)
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

/// Applies the limits of the server.
pub async fn admit(
    State(gate): State<PageGate>,
    request: Request,
    next: Next,
) -> Result<Response, PageError> {
    gate.handle(request, next).await.map_err(|error| {
        let message = api::sentence(&error.to_string());
        PageError::Failed { status: error.into_response().status(), message }
    })
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
