//! Saved views: the filters of a list that a person keeps under a name.

use axum::{
    extract::{Form as FormBody, Path},
    response::{IntoResponse, Redirect},
};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use url::form_urlencoded;

use super::lists::Filter;
use crate::{api::ApiResult, format::plain, page::PageResult, session::Session};

/// Filters that may hold personal data, which views do not keep.
const PERSONAL: &[&str] = &["search", "to", "user_id"];

/// The views of a list, and the form that saves another one.
pub struct SavedViews {
    pub views: Vec<SavedView>,
    /// Path to which the form posts; `None` if no filter is set, or if a view has these filters.
    pub save: Option<String>,
    /// The filters to save, as a query.
    pub query: String,
    /// The page to which the person returns.
    pub back: String,
    pub form_token: String,
}

pub struct SavedView {
    pub name: String,
    pub href: String,
    pub is_current: bool,
    /// Path to which the form posts that deletes it.
    pub delete: String,
}

impl SavedViews {
    /// Fetches the views of a list; `None` if it has no filters.
    pub async fn fetch(
        session: &Session,
        source: &[&str],
        filters: &[Filter],
    ) -> ApiResult<Option<SavedViews>> {
        let Some(list) = source.last().filter(|_| !filters.is_empty()) else { return Ok(None) };
        let query: Vec<_> = filters.iter().map(|filter| (filter.name, &*filter.value)).collect();
        let kept = |(name, value): &(&str, &str)| !value.is_empty() && !PERSONAL.contains(name);
        let kept: Vec<_> = query.iter().copied().filter(kept).collect();
        let current: Map<String, Value> =
            kept.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
        let found = session.get(&["me", "views"], &[]).await?;
        let own = found.as_array().into_iter().flatten().filter(|view| view["list"] == *list);
        let views = own.map(|view| {
            let name = plain(&view["name"]);
            let filters: Vec<_> = view["filters"].as_object().into_iter().flatten().collect();
            let query: Vec<_> = filters
                .iter()
                .map(|(name, value)| (&***name, value.as_str().unwrap_or("")))
                .collect();
            SavedView {
                href: session.href(source, &query),
                is_current: view["filters"].as_object() == Some(&current),
                delete: session.href(&["views", list, &name, "delete"], &[]),
                name,
            }
        });
        let views: Vec<_> = views.collect();
        let is_new = !current.is_empty() && views.iter().all(|view| !view.is_current);
        Ok(Some(SavedViews {
            views,
            save: is_new.then(|| session.href(&["views", list], &[])),
            query: form_urlencoded::Serializer::new(String::new()).extend_pairs(&kept).finish(),
            back: session.href(source, &query),
            form_token: session.form_token(),
        }))
    }
}

#[derive(Deserialize)]
pub struct NewView {
    form_token: String,
    name: String,
    query: String,
    back: String,
}

pub async fn save(
    session: Session,
    Path(list): Path<String>,
    FormBody(sent): FormBody<NewView>,
) -> PageResult {
    session.check_form(&sent.form_token)?;
    let filters: Map<String, Value> = form_urlencoded::parse(sent.query.as_bytes())
        .map(|(name, value)| (name.into_owned(), json!(value)))
        .collect();
    let path = ["me", "views", &list, &sent.name];
    session.put(&path, &json!({ "filters": filters })).await?;
    Ok(Redirect::to(session.site().own_page(&sent.back)).into_response())
}

#[derive(Deserialize)]
pub struct Deletion {
    form_token: String,
    back: String,
}

pub async fn delete(
    session: Session,
    Path((list, view)): Path<(String, String)>,
    FormBody(sent): FormBody<Deletion>,
) -> PageResult {
    session.check_form(&sent.form_token)?;
    session.delete(&["me", "views", &list, &view]).await?;
    Ok(Redirect::to(session.site().own_page(&sent.back)).into_response())
}
