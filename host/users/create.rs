//! Creating users: an e-mail address is one user of a company, who is charged for once.

use super::{User, store};
use crate::{
    app::App,
    companies::Company,
    error::{Error, Result},
    store::{Tx, is_duplicate},
    wallet,
};

/// What a new user is billed as.
pub const ITEM: &str = "customer.create";

/// Stores a new user and charges for it, or finds the one with this e-mail address, whose `user_id` becomes the one that was
/// `chosen`. 400 when somebody else has that one, or the wallet does not cover the charge.
pub async fn create(
    tx: &mut Tx,
    app: &App,
    company: &Company,
    user: User,
    chosen: bool,
) -> Result<User> {
    // Whoever was in the way may be gone when they are looked for; the second time nobody is.
    for _ in 0..2 {
        if store::insert(tx, &user).await? {
            wallet::charge(tx, app, company, ITEM, 1, &format!("user:{}", user.id)).await?;
            return Ok(user);
        }
        if let Some(found) = find(tx, &user, chosen).await? {
            return Ok(found);
        }
    }
    Err(Error::internal("a user was neither stored nor found"))
}

/// The user who has the e-mail address; `None` when nobody has it or the `user_id` any more.
async fn find(tx: &mut Tx, user: &User, chosen: bool) -> Result<Option<User>> {
    let email = user.email.as_deref().unwrap_or_default();
    let found = store::lock_by_email(tx, &user.company_id, email).await?;
    let holder = store::by_user_id(tx, &user.company_id, &user.user_id).await?;
    match (found, holder) {
        (Some(found), None) if chosen => rename(tx, found, user).await.map(Some),
        (Some(found), Some(holder)) if chosen && holder.id != found.id => Err(taken()),
        (None, Some(_)) => Err(taken()),
        (found, _) => Ok(found),
    }
}

async fn rename(tx: &mut Tx, mut found: User, wanted: &User) -> Result<User> {
    (found.user_id, found.updated_at) = (wanted.user_id.clone(), wanted.updated_at);
    match store::update(tx, &found).await {
        Err(error) if is_duplicate(&error) => Err(taken()),
        updated => Ok(updated.map(|()| found)?),
    }
}

/// The `user_id` is somebody else's.
pub fn taken() -> Error {
    Error::invalid("user already exists")
}
