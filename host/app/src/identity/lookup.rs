//! Identity lookups: fee, call of the plugin, storage of the result, and a code if requested.
//!
//! The fee is committed before the register is queried, and kept if the lookup fails
//! (specification, lookup rule 4). No transaction is open during the query, nor while an image is
//! fetched. Clients receive only messages that the interface defines, never text from a register.
//!
//! `upsert` finds the row of the same company, user, type and identifier by a keyed digest, because
//! the identifier is stored nowhere, and seals details, addresses and comparison in it. A verified
//! record stays verified, and `expires_at` stays: records are unavailable after 30 days, and
//! `sweep` deletes them. A response that is stored under an idempotency key expires together with
//! the record that it contains.

use super::{
    ImageLimiter, Method, RETENTION_SECONDS, Record, Uid,
    api::Lookup,
    catalog::{Identity, LookupMethod},
    image, store, verification,
};
use crate::{
    customers::{self as users, User, UserKey},
    tenants::prelude::*,
};
use tollhouse_plugins::{
    CallError, Credentials, Fault, FaultCategory, IdentityQuery, Image, Person,
};

/// Input of a lookup. `I` is an image as named by the request, then as loaded.
#[derive(Clone)]
pub enum LookupSubject<I> {
    Number { identifier: String },
    Face { identifier: String, selfie: I },
    Document { document: I },
}

/// Result of a lookup.
pub struct CompletedLookup {
    pub uid: Uid,
    pub record: Record,
    /// Result of sending the requested code; `None` if there was none to send.
    pub code_sent: Option<Result<()>>,
}

impl LookupSubject<String> {
    fn method(&self) -> LookupMethod {
        match self {
            LookupSubject::Number { .. } => LookupMethod::Number,
            LookupSubject::Face { .. } => LookupMethod::Face,
            LookupSubject::Document { .. } => LookupMethod::Document,
        }
    }

    async fn load(self, app: &App) -> Result<LookupSubject<Image>> {
        use LookupSubject::{Document, Face, Number};
        Ok(match self {
            Number { identifier } => Number { identifier },
            Face { identifier, selfie } => {
                Face { identifier, selfie: image::load(app, &selfie).await? }
            }
            Document { document } => Document { document: image::load(app, &document).await? },
        })
    }
}

#[instrument(target = SPAN_TARGET, name = "identity.lookup", skip_all)]
pub async fn look_up(
    app: &App,
    company: &Company,
    identity: &Identity,
    order: Lookup,
    run: Option<String>,
) -> Result<CompletedLookup> {
    let (user, credentials) = prepare(app, company, identity, &order).await?;
    let Lookup { user_id, send_otp, subject } = order;
    let method = subject.method();
    let result = {
        // The permit covers all work that holds an image in memory.
        let _permit = app.slot::<ImageLimiter>().try_acquire(&company.id, method)?;
        let subject = subject.load(app).await?;
        // One fee for all runs of a request.
        let key = format!("identity:{}", run.clone().unwrap_or_else(|| app.new_id()));
        let (host, payer, item) = (app.clone(), company.clone(), identity.billing_item(method));
        let charge =
            async move |tx: &mut Tx| wallet::charge_fee(tx, &host, &payer, item, 1, &key).await;
        app.store.write(charge).await?;
        query_register(&credentials, user.as_ref(), identity, subject).await
    };
    let result =
        result.map_err(|error| Error::AfterCommit(client_error(identity, method, error).into()))?;
    let link = (user.map(|user| user.id), user_id);
    let (uid, record) = store_result(app, company, identity, link, result).await?;
    let sends_code =
        send_otp == Some(true) && verification::can_be_verified_by_code(Some(identity), &record);
    let code_sent = match sends_code {
        true => Some(verification::send(app, company, &uid, &record, run).await),
        false => None,
    };
    Ok(CompletedLookup { uid, record, code_sent })
}

/// Performs all checks that are possible before an image is fetched and the fee is charged.
async fn prepare(
    app: &App,
    company: &Company,
    identity: &Identity,
    order: &Lookup,
) -> Result<(Option<User>, Credentials)> {
    let read = async |tx: &mut Tx| -> Result<_> {
        let disabled = store::list_disabled(tx, &Owner::from(&company.id)).await?;
        if disabled.contains(&identity.name()) {
            let noun = identity.noun();
            let message = format!("{noun} identity has been disabled, please try again later");
            return Err(Error::Invalid(message));
        }
        let mut user = None;
        if let Some(user_id) = &order.user_id {
            user = Some(users::get(tx, &company.id, user_id).await?);
        }
        let account = providers::find_usable(tx, company, identity.country()).await?;
        let account = account.map_err(|why| match why {
            NoAccount::Missing => why.to_error(identity.country()),
            NoAccount::Deactivated => Error::Upstream {
                message: unavailable_message(identity),
                detail: "the account is deactivated".to_owned(),
            },
        })?;
        let item = identity.billing_item(order.subject.method());
        wallet::quote_fee(tx, company, item, 1).await?.check_balance()?;
        Ok((user, account))
    };
    let (user, account) = app.store.read(read).await?;
    Ok((user, account.open_credentials(app)?))
}

/// Returns the identifier and what the register has on record.
async fn query_register(
    credentials: &Credentials,
    user: Option<&User>,
    identity: &Identity,
    subject: LookupSubject<Image>,
) -> Result<(String, Record), CallError> {
    let (registers, kind) = (&identity.country_plugin, identity.identity_type());
    let query = |identifier: &String| IdentityQuery {
        identity: kind.name.clone(),
        identifier: identifier.clone(),
        person: user.map(|user| Person {
            first_name: user.first_name.clone(),
            last_name: user.last_name.clone(),
            date_of_birth: user.date_of_birth.clone(),
        }),
    };
    match subject {
        LookupSubject::Number { identifier } => {
            let entry = registers.look_up(credentials, &query(&identifier)).await?;
            Ok((identifier, Record::new(entry, None)))
        }
        LookupSubject::Face { identifier, selfie } => {
            let query = query(&identifier);
            let (entry, comparison) = registers.compare(credentials, &query, &selfie).await?;
            Ok((identifier, Record::new(entry, Some(comparison))))
        }
        LookupSubject::Document { document } => {
            let (read, entry) = registers.read(credentials, &kind.name, &document).await?;
            // Normalized as in a lookup by number, so that both update the same record.
            let identifier = kind.normalize_identifier(&read).ok_or_else(unusable_identifier)?;
            Ok((identifier, Record::new(entry, None)))
        }
    }
}

fn unusable_identifier() -> CallError {
    let message = "the identifier read from the document is invalid";
    let fault = Fault::new(FaultCategory::Unavailable, "unexpected-answer", message);
    CallError::not_done(fault)
}

/// Returns the client's error, without text from the register.
fn client_error(identity: &Identity, way: LookupMethod, error: CallError) -> Error {
    let noun = identity.noun();
    let CallError { fault, timed_out, retry_after_s, .. } = error;
    let blamed = fault.detail("field");
    match (fault.category, way, blamed) {
        (FaultCategory::NotFound, ..) => Error::not_found(format!("{noun} data not found")),
        (FaultCategory::Invalid, LookupMethod::Face, Some("image")) => {
            Error::invalid("the image field must show a face")
        }
        (FaultCategory::Invalid, LookupMethod::Document, Some("image")) => {
            Error::invalid(format!("the image field must show a {noun} that can be read"))
        }
        (FaultCategory::Invalid, LookupMethod::Document, _) => {
            Error::invalid("the image field must show a document that the register accepts")
        }
        (FaultCategory::Invalid, ..) => {
            let field = &identity.identity_type().field;
            Error::invalid(format!("the {field} field must be one that the register accepts"))
        }
        (FaultCategory::Refused, ..) => Error::invalid(format!("{noun} data cannot be disclosed")),
        // The plugin's message may contain personal data, so only its category and code are logged.
        (category, ..) => {
            let message = unavailable_message(identity);
            let detail = format!("{category:?} {:?}", fault.code);
            match retry_after_s {
                _ if timed_out => {
                    Error::UpstreamTimeout { message, detail: format!("{category:?}") }
                }
                Some(retry_after_s) => Error::RetryLater { message, detail, retry_after_s },
                None => Error::Upstream { message, detail },
            }
        }
    }
}

fn unavailable_message(identity: &Identity) -> String {
    format!("{} service is unavailable, please try again later", identity.noun())
}

/// Stores the result. A repeated lookup for the same user updates the existing record.
async fn store_result(
    app: &App,
    company: &Company,
    identity: &Identity,
    (user_key, user_id): (Option<UserKey>, Option<String>),
    (identifier, record): (String, Record),
) -> Result<(Uid, Record)> {
    let identity = identity.name();
    let whose = user_key.as_deref().unwrap_or_default();
    let lookups = app.sealer.digests(&["uid", &company.id, whose, &identity, &identifier]);
    let now = app.clock.now();
    let new = Uid {
        company_id: company.id.clone(),
        id: app.new_id(),
        lookup: lookups[0].clone(),
        user_key,
        user_id,
        identity,
        record: String::new(),
        verified_at: None,
        verified_by: Json(Vec::new()),
        expires_at: now.plus_seconds(RETENTION_SECONDS),
        created_at: now,
        updated_at: now,
    };
    let host = app.clone();
    app.store.write(async move |tx| upsert(tx, &host, &lookups, new, record).await).await
}

/// Inserts a record, or updates the existing one.
async fn upsert(
    tx: &mut Tx,
    app: &App,
    lookups: &[String],
    mut uid: Uid,
    mut record: Record,
) -> Result<(Uid, Record)> {
    let now = uid.updated_at;
    for _ in 0..2 {
        match store::lock_by_lookup(tx, &uid.company_id, lookups).await? {
            Some(former) if former.expires_at > now => {
                // Keep the digest, even of a previous key: another row may have the current one.
                let mut uid = Uid { user_id: uid.user_id, updated_at: now, ..former };
                if record.face.is_none() {
                    record.face = Record::open_or_log(app, &uid).and_then(|former| former.face);
                } else {
                    apply_face_match(&mut uid, &record);
                }
                uid.record = record.seal(app, &uid.company_id, &uid.id)?;
                store::update(tx, &uid).await?;
                return Ok((uid, record));
            }
            Some(expired) => store::delete(tx, &expired).await?,
            None => {}
        }
        apply_face_match(&mut uid, &record);
        uid.record = record.seal(app, &uid.company_id, &uid.id)?;
        if store::insert(tx, &uid).await? {
            return Ok((uid, record));
        }
        // A concurrent lookup inserted the same record: update it.
    }
    Err(Error::internal("identity record could neither be inserted nor updated"))
}

fn apply_face_match(uid: &mut Uid, record: &Record) {
    if record.face.as_ref().is_some_and(|face| face.status) {
        uid.verify(Method::FaceValidation, uid.updated_at);
    }
}
