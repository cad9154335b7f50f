//! Operator API for prices.

use std::{borrow::Cow, collections::BTreeMap};

use schemars::{Schema, SchemaGenerator, json_schema};

use super::{FIXED_ITEMS, LOOKUP_PATTERN, feature_of, store};
use crate::tenants::prelude::*;
use tollhouse_platform::values::money::MAX_MINOR;

/// Prices by billing item.
#[derive(Serialize, JsonSchema)]
pub struct Prices {
    currency: &'static str,
    prices: BTreeMap<String, Price>,
}

#[derive(Serialize, JsonSchema)]
pub struct Price {
    /// Price of one unit.
    price: Minor,
    /// Source of the price: the company's plan, the default plan or, if neither names the item, its
    /// plugin. `null` if none of them sets a price: the item is free.
    plan: Option<Plan>,
}

#[derive(Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Plan {
    Company,
    Default,
    Plugin,
}

pub async fn fetch_for_company(
    State(app): State<App>,
    Path(company): Path<CompanyId>,
) -> Result<DataResponse<Prices>> {
    companies::find(&app, &company).await?;
    fetch(&app, company.into()).await
}

pub async fn fetch_default(State(app): State<App>) -> Result<DataResponse<Prices>> {
    fetch(&app, Owner::Service).await
}

async fn fetch(app: &App, owner: Owner) -> Result<DataResponse<Prices>> {
    let prices = app.store.select(async |tx| prices(tx, app, &owner).await).await?;
    DataResponse::data(prices, "Prices fetched successfully")
}

/// New prices by billing item. `null` removes a price; items that are not named stay unchanged.
pub struct PriceChanges;

impl JsonSchema for PriceChanges {
    fn schema_name() -> Cow<'static, str> {
        "PriceChanges".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let price = json!({ "type": ["number", "null"], "minimum": 0, "maximum": Minor(MAX_MINOR), "multipleOf": 0.01 });
        let items: BTreeMap<_, _> = FIXED_ITEMS.iter().map(|(item, _)| (item, &price)).collect();
        json_schema!({
            "type": "object",
            "description": "Prices by billing item. `null` removes a price; items that are not named stay unchanged.",
            "properties": items,
            "patternProperties": { LOOKUP_PATTERN: price },
            "additionalProperties": false,
            "examples": [{ "otp.email": 2.5, "identity.nigeria.bvn": 100, "otp.sms": null }],
        })
    }
}

type Changes = Vec<(String, Option<Minor>)>;

fn read(body: &Body<PriceChanges>) -> Result<Changes> {
    let change = |item: &String| match feature_of(item) {
        Some(_) => Ok((item.clone(), body.field::<Option<NonNegative>>(item)?)),
        None => {
            Err(body.must_be(item, "a billing item, such as otp.email or identity.nigeria.bvn"))
        }
    };
    let mut changes = body.names().map(change).collect::<Result<Changes>>()?;
    // In one order, so that two concurrent requests cannot deadlock.
    changes.sort_by(|(item, _), (other, _)| item.cmp(other));
    Ok(changes)
}

pub async fn set_for_company(
    State(app): State<App>,
    actor: Actor,
    Path(company): Path<CompanyId>,
    body: Body<PriceChanges>,
) -> Result<DataResponse<Prices>> {
    let changes = read(&body)?;
    companies::find(&app, &company).await?;
    set(app, actor, company.into(), changes).await
}

pub async fn set_default(
    State(app): State<App>,
    actor: Actor,
    body: Body<PriceChanges>,
) -> Result<DataResponse<Prices>> {
    set(app, actor, Owner::Service, read(&body)?).await
}

async fn set(
    app: App,
    actor: Actor,
    owner: Owner,
    changes: Changes,
) -> Result<DataResponse<Prices>> {
    let db = app.store.clone();
    db.write(async move |tx| {
        for (item, price) in &changes {
            match price {
                Some(price) => store::upsert(tx, &owner, item, *price).await?,
                None => store::delete(tx, &owner, item).await?,
            }
        }
        let detail: BTreeMap<_, _> = changes.into_iter().collect();
        audit::record(tx, &app, &actor, owner.clone(), "price.set", json!(detail)).await?;
        DataResponse::data(prices(tx, &app, &owner).await?, "Prices updated successfully")
    })
    .await
}

/// Returns the prices of all fixed items, and of the lookups that a plan or a plugin prices. For a
/// plugin with a canary, the active version counts.
async fn prices(tx: &mut Tx, app: &App, owner: &Owner) -> Result<Prices> {
    let unpriced =
        FIXED_ITEMS.map(|(item, _)| (item.to_owned(), Price { price: Minor(0), plan: None }));
    let mut prices = BTreeMap::from(unpriced);
    for country in app.plugins.active_country_plugins() {
        let set = country.manifest().prices().filter(|(_, price)| *price > Minor(0));
        prices.extend(set.map(|(item, price)| (item, Price { price, plan: Some(Plan::Plugin) })));
    }
    for row in store::list(tx, owner).await? {
        let plan = if row.owner == Owner::Service { Plan::Default } else { Plan::Company };
        prices.insert(row.item, Price { price: row.amount_minor, plan: Some(plan) });
    }
    Ok(Prices { currency: BILLING_CURRENCY, prices })
}
