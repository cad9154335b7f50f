//! The API for companies: read events without a receiver, and trigger events of a test company.

use crate::{
    operations::feeds::visibility_horizon,
    tenants::prelude::*,
    webhooks::outgoing::{
        self as events, Event, TYPES,
        endpoints::EventType,
        example,
        store::{self, ListedEvent},
    },
};

fields! {
    /// Range and filter of events.
    Query Reading {
        /// `next` of the previous response; default: the events of about the last minute.
        after: Cursor,
        /// Comma-separated types of events; default: all.
        #[schemars(extend("examples" = ["payment.success,payment.failed"]))]
        types: Exactly as Vec<String> => parse_types(types.as_deref()),
        /// Maximum number of events; more than 1,000 counts as 1,000.
        limit: Limit<100, 1_000>,
    }
}

fn parse_types(types: Option<&str>) -> Result<Vec<String>> {
    let types: Vec<String> =
        types.iter().flat_map(|all| all.split(',')).map(str::to_owned).collect();
    match types.iter().all(|kind| TYPES.contains(&kind.as_str())) {
        true => Ok(types),
        false => {
            Err(Error::invalid(format!("the types field must be any of {}", TYPES.join(", "))))
        }
    }
}

/// A part of a company's events.
#[derive(Serialize, JsonSchema)]
pub struct ListedEvents {
    /// Oldest first.
    events: Vec<ListedEvent>,
    /// Cursor of the next request, also if there are no events. Events of about the last minute are
    /// returned again, because others may still be committed before them: deduplicate by `id`.
    next: String,
}

/// Lists events after a cursor. A reader that continues from `next` misses none.
pub async fn read(
    State(app): State<App>,
    AuthenticatedCompany(company): AuthenticatedCompany,
    query: Query<Reading>,
) -> Result<DataResponse<ListedEvents>> {
    let Reading { after, types, limit } = query.read()?;
    let horizon = visibility_horizon(&app);
    let after = if after.is_empty() { &horizon } else { &after };
    let events = app
        .store
        .select(async |tx| store::list_after(tx, &company.id, after, &types, limit).await)
        .await?;
    // A full page: the next one follows, also beyond the horizon. At the end, the cursor returns to
    // the horizon.
    let next = next_cursor(&events, limit, |event: &ListedEvent| event.id.cursor());
    let next = next.unwrap_or(horizon);
    DataResponse::data(ListedEvents { events, next }, "Events fetched successfully")
}

fields! {
    /// An event to trigger.
    Body NewTrigger {
        r#type as "type": OneOf<EventType>,
        /// Values for fields of the example's data, for example `{"amount": 2500.5}`.
        data: Option<Object>,
    }
}

/// Writes an event with example data for a test company, and delivers it like any other. The record
/// in its data does not exist: its id begins with `test-`.
pub async fn trigger(
    State(app): State<App>,
    AuthenticatedCompany(company): AuthenticatedCompany,
    run: IdempotentRequest,
    body: Body<NewTrigger>,
) -> Result<DataResponse<ListedEvent>> {
    write_example(&app, company, None, &run, &body).await
}

/// Like [`trigger`], for an operator or a member of the company.
pub async fn trigger_of_company(
    State(app): State<App>,
    actor: Actor,
    AuthenticatedCompany(company): AuthenticatedCompany,
    run: IdempotentRequest,
    body: Body<NewTrigger>,
) -> Result<DataResponse<ListedEvent>> {
    write_example(&app, company, Some(actor), &run, &body).await
}

async fn write_example(
    app: &App,
    company: Company,
    actor: Option<Actor>,
    run: &IdempotentRequest,
    body: &Body<NewTrigger>,
) -> Result<DataResponse<ListedEvent>> {
    if !company.is_test() {
        return Err(Error::Forbidden("only a test company can trigger events".to_owned()));
    }
    let NewTrigger { r#type, data } = body.read()?;
    let id = run.name("test").unwrap_or_else(|| format!("test-{}", app.new_id()));
    let mut example = example::data(&r#type, &id, app.clock.now());
    example::set(body, &mut example, data.unwrap_or_default())?;
    let (app, db) = (app.clone(), app.store.clone());
    db.write(async move |tx| {
        // An interrupted run of this request may have written it.
        if let Some(event) = store::find_listed(tx, &company.id, &id).await? {
            return DataResponse::data(event, MESSAGE);
        }
        let kind = TYPES.iter().find(|kind| **kind == r#type).expect("the body was checked");
        let event = Event {
            kind,
            subject_id: id.clone(),
            data: Value::Object(example),
            callback_url: None,
        };
        events::emit(tx, &app, &company.id, event).await?;
        if let Some(actor) = actor {
            let detail = json!({ "type": kind, "record": id });
            audit::record(tx, &app, &actor, &company.id, "event.trigger", detail).await?;
        }
        let event = store::find_listed(tx, &company.id, &id).await?;
        let event = event.ok_or_else(|| Error::internal("the event was not written"))?;
        DataResponse::data(event, MESSAGE)
    })
    .await
}

const MESSAGE: &str = "Event triggered successfully";
