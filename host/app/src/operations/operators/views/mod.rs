//! Saved views: the filters of a list that an operator keeps under a name, for itself only.

mod store;

pub use self::store::View;
use crate::{
    operations::audit::{self, Actor},
    state::prelude::*,
};

/// Maximum number of views of an operator.
const MAX_VIEWS: i64 = 100;
/// Maximum number of filters of a view.
const MAX_FILTERS: usize = 20;
/// Maximum length of names, and of a filter's value.
const MAX_CHARS: usize = 100;

/// Returns the views of the operator of this token, by list and name.
pub async fn list(State(app): State<App>, actor: Actor) -> Result<DataResponse<Vec<View>>> {
    let views = app.store.select(async |tx| store::list(tx, &actor.id).await).await?;
    DataResponse::data(views, "Views fetched successfully")
}

fields! {
    /// A view to save.
    Body NewView(body) {
        /// The values of the list's filters by name, at most 20 of 100 characters each. They must
        /// not be personal data.
        filters: TextsByName => check_filters(body, filters),
    }
}

fn check_filters(body: &Fields, filters: Vec<(String, String)>) -> Result<Vec<(String, String)>> {
    let is_short = |text: &String| text.chars().count() <= MAX_CHARS;
    let are_short = filters.iter().all(|(name, value)| is_short(name) && is_short(value));
    match filters.len() <= MAX_FILTERS && are_short {
        true => Ok(filters),
        false => Err(body.must_be("filters", "at most 20 texts of at most 100 characters")),
    }
}

fn check_name(field: &str, name: &str) -> Result<()> {
    match name.trim().is_empty() || name.chars().count() > MAX_CHARS {
        true => {
            let message = format!("the {field} must have 1 to {MAX_CHARS} characters");
            Err(Error::Invalid(message))
        }
        false => Ok(()),
    }
}

/// Saves a view, or replaces the one with this name.
pub async fn save(
    State(app): State<App>,
    actor: Actor,
    Path((list, name)): Path<(String, String)>,
    body: Body<NewView>,
) -> Result<DataResponse<View>> {
    let filters = NewView::read(&body)?.filters;
    check_name("list", &list)?;
    check_name("view", &name)?;
    let filters = filters.into_iter().map(|(name, value)| (name, json!(value))).collect();
    let name = name.trim().to_owned();
    let view = View { list, name, filters: Json(filters), saved_at: app.clock.now() };
    let db = app.store.clone();
    db.write(async move |tx| {
        store::upsert(tx, &actor.id, &view).await?;
        if store::count(tx, &actor.id).await? > MAX_VIEWS {
            return Err(Error::Conflict(format!("an operator can save at most {MAX_VIEWS} views")));
        }
        let detail = json!({ "list": view.list, "view": view.name });
        audit::record(tx, &app, &actor, actor.log(), "view.save", detail).await?;
        DataResponse::data(view, "View saved successfully")
    })
    .await
}

pub async fn delete(
    State(app): State<App>,
    actor: Actor,
    Path((list, name)): Path<(String, String)>,
) -> Result<MessageResponse> {
    let db = app.store.clone();
    db.write(async move |tx| {
        if !store::delete(tx, &actor.id, &list, &name).await? {
            return Err(Error::not_found("view not found"));
        }
        let detail = json!({ "list": list, "view": name });
        audit::record(tx, &app, &actor, actor.log(), "view.delete", detail).await?;
        Ok(MessageResponse("View deleted successfully"))
    })
    .await
}
