//! Creation of users. An e-mail address identifies one user of a company, who is billed once.

use super::{User, store};
use crate::tenants::prelude::*;
use tollhouse_platform::store::is_duplicate;

pub const BILLING_ITEM: &str = "customer.create";

/// Inserts and bills a user, or returns the one with the same e-mail address, whose `user_id` is
/// replaced if `chosen`. 400 if another user has the `user_id`, or the balance is insufficient.
pub async fn create(
    tx: &mut Tx,
    app: &App,
    company: &Company,
    user: User,
    chosen: bool,
) -> Result<User> {
    // A conflicting user may have changed before it is read: then try again.
    for _ in 0..2 {
        if store::insert(tx, &user).await? {
            wallet::charge_fee(tx, app, company, BILLING_ITEM, 1, &format!("user:{}", user.id))
                .await?;
            return Ok(user);
        }
        if let Some(found) = find_existing(tx, &user, chosen).await? {
            return Ok(found);
        }
    }
    Err(Error::internal("user could neither be inserted nor found"))
}

/// Returns the user with the e-mail address; `None` if the conflict no longer exists.
async fn find_existing(tx: &mut Tx, user: &User, chosen: bool) -> Result<Option<User>> {
    let email = user.email.as_deref().unwrap_or_default();
    let found = store::lock_by_email(tx, &user.company_id, email).await?;
    let holder = store::find_by_user_id(tx, &user.company_id, &user.user_id).await?;
    match (found, holder) {
        (Some(mut found), None) if chosen => {
            (found.user_id, found.updated_at) = (user.user_id.clone(), user.updated_at);
            match store::update(tx, &found).await {
                Err(error) if is_duplicate(&error) => Err(user_id_taken()),
                updated => Ok(updated.map(|()| Some(found))?),
            }
        }
        (Some(found), Some(holder)) if chosen && holder.id != found.id => Err(user_id_taken()),
        (None, Some(_)) => Err(user_id_taken()),
        (found, _) => Ok(found),
    }
}

pub fn user_id_taken() -> Error {
    Error::invalid("user already exists")
}
