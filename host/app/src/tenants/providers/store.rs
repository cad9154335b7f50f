//! Storage of provider accounts.

use super::AccountOwner;
use crate::state::storage::*;

text_types! {
    /// The id of a provider account: opaque and unguessable.
    AccountId;
}

#[derive(Clone, Debug, FromRow)]
pub struct Account {
    #[sqlx(rename = "company_id", try_from = "String")]
    pub owner: AccountOwner,
    pub provider: String,
    /// Opaque, unguessable id.
    pub id: AccountId,
    /// Sealed JSON object of strings.
    pub credentials: Option<String>,
    pub active: bool,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// Sealed column. Its context has company, provider and id: credentials open in no other row.
pub const SEALED: [SealedColumn; 1] = [CREDENTIALS];
const CREDENTIALS: SealedColumn = sealed_column!(
    provider_accounts(company_id, (provider || '/' || id)).credentials,
    |company, account| format!("provider_accounts/{company}/{account}/credentials"),
    formerly context_of_id
);

/// Seal context in rows of versions that bound credentials to the account's id only.
fn context_of_id(_: &str, account: &str) -> String {
    let id = account.rsplit_once('/').map_or(account, |(_, id)| id);
    format!("provider_accounts/{id}/credentials")
}

impl Account {
    /// The account within its company, as in the context of `CREDENTIALS`.
    fn seal_id(&self) -> String {
        format!("{}/{}", self.provider, self.id)
    }

    /// Opens the credentials as JSON, if there are any.
    pub(super) fn open_json(&self, sealer: &Sealer) -> Result<Option<String>, SealError> {
        let open = |sealed: &String| {
            CREDENTIALS.open(sealer, [self.owner.column(), &self.seal_id()], sealed)
        };
        self.credentials.as_ref().map(open).transpose()
    }

    /// Seals JSON credentials for this account.
    pub(super) fn seal_json(&self, sealer: &Sealer, json: &str) -> String {
        sealer.seal(&(CREDENTIALS.context)(self.owner.column(), &self.seal_id()), json)
    }
}

pub async fn find(tx: &mut Tx, owner: &AccountOwner, provider: &str) -> Result<Option<Account>> {
    tx.sql("SELECT * FROM provider_accounts WHERE company_id = $1 AND provider = $2")
        .params(params![owner.column(), provider])
        .optional()
        .await
}

/// Returns the accounts of two owners at a provider.
pub async fn find_both(
    tx: &mut Tx,
    [one, other]: &[AccountOwner; 2],
    provider: &str,
) -> Result<Vec<Account>> {
    tx.sql("SELECT * FROM provider_accounts WHERE company_id IN ($1, $2) AND provider = $3")
        .params(params![one.column(), other.column(), provider])
        .all()
        .await
}

/// Returns the accounts of two owners at several providers.
pub async fn find_at(
    tx: &mut Tx,
    [one, other]: &[AccountOwner; 2],
    providers: &[String],
) -> Result<Vec<Account>> {
    let select = DynamicStatement::from("SELECT * FROM provider_accounts WHERE company_id IN (")
        .bind(one.column())
        .append(", ")
        .bind(other.column())
        .append(") AND provider")
        .append_in(providers);
    tx.dynamic(&select).all().await
}

/// Returns the account with this id, of any owner: webhook URLs and records hold only the id.
pub async fn find_by_id(tx: &mut Tx, id: &str) -> Result<Option<Account>> {
    tx.sql("SELECT * FROM provider_accounts WHERE id = $1").bind(id).optional().await
}

pub async fn list(tx: &mut Tx, owner: &AccountOwner) -> Result<Vec<Account>> {
    tx.sql("SELECT * FROM provider_accounts WHERE company_id = $1 ORDER BY provider")
        .bind(owner.column())
        .all()
        .await
}

/// Inserts `new` if its company has no account at the provider. Returns the stored account and
/// locks its row until the transaction ends.
pub async fn lock_or_insert(tx: &mut Tx, new: &Account) -> Result<Account> {
    let owner = new.owner.column();
    tx.sql(
        "INSERT INTO provider_accounts (company_id, provider, id, credentials, active,
             created_at, updated_at)
         VALUES ($1, $2, $3, $4, $5, $6, $6) ON CONFLICT (company_id, provider) DO NOTHING",
    )
    .params(params![owner, &new.provider, &new.id, &new.credentials, new.active, new.created_at])
    .execute()
    .await?;
    tx.sql("SELECT * FROM provider_accounts WHERE company_id = $1 AND provider = $2 FOR UPDATE")
        .params(params![owner, &new.provider])
        .one()
        .await
}

pub async fn update(tx: &mut Tx, account: &Account) -> Result<()> {
    let Account { provider, credentials, active, updated_at, .. } = account;
    let owner = account.owner.column();
    tx.sql(
        "UPDATE provider_accounts SET credentials = $3, active = $4, updated_at = $5
         WHERE company_id = $1 AND provider = $2",
    )
    .params(params![owner, provider, credentials, active, updated_at])
    .execute()
    .await
}

/// Returns the usable accounts at these providers that have no job of this kind.
pub async fn list_without_job(
    tx: &mut Tx,
    kind: &str,
    providers: &[String],
) -> Result<Vec<Account>> {
    let select = DynamicStatement::from(
        "SELECT a.* FROM provider_accounts a
         WHERE a.active AND a.credentials IS NOT NULL AND NOT EXISTS (
             SELECT 1 FROM jobs j
             WHERE j.company_id = CASE WHEN a.company_id = 'test' THEN '' ELSE a.company_id END
                 AND j.subject = a.id AND j.kind = ",
    );
    let select = select.bind(kind).append(") AND a.provider").append_in(providers);
    tx.dynamic(&select).all().await
}
