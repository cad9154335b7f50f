//! Storage of operators, their tokens and their own roles.

use crate::state::storage::*;

/// An operator: a person or a service that uses the internal interface.
#[derive(Clone, Debug, FromRow, Serialize, JsonSchema)]
pub struct Operator {
    pub id: String,
    /// Unique name, which the audit log shows.
    pub name: String,
    /// E-mail address of a person; `null` for a service.
    pub email: Option<String>,
    #[schemars(with = "Vec<String>")]
    pub roles: Json<Vec<String>>,
    /// Ids of the companies to which the operator is limited; `null`: no limit. A limited operator
    /// can call only routes with a company in their path.
    #[schemars(with = "Option<Vec<String>>")]
    pub companies: Option<Json<Vec<CompanyId>>>,
    /// The company to whose team a member belongs.
    #[serde(skip)]
    pub company_id: Option<CompanyId>,
    /// `false`: all tokens of the operator are rejected.
    pub active: bool,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema, EnumString, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum TokenKind {
    Token,
    /// For a person who signed in. Ends after 12 hours, or after 30 minutes without a request.
    Session,
    /// For setting a password, once, within 24 hours.
    Invitation,
}

text_columns!(TokenKind);

/// A token, session or invitation without its secret.
#[derive(Clone, Debug, FromRow, Serialize, JsonSchema)]
pub struct Token {
    pub id: String,
    pub kind: TokenKind,
    /// First characters of the token.
    pub prefix: String,
    pub label: Option<String>,
    /// Last use, recorded at most once a minute.
    pub last_used_at: Option<Timestamp>,
    pub expires_at: Option<Timestamp>,
    pub revoked_at: Option<Timestamp>,
    pub created_at: Timestamp,
}

/// An operator and the token that authenticated it.
#[derive(Clone, Debug, FromRow)]
pub struct TokenHolder {
    #[sqlx(flatten)]
    pub operator: Operator,
    pub token_id: String,
    pub last_used_at: Option<Timestamp>,
}

impl TokenHolder {
    pub fn is_member(&self) -> bool {
        self.operator.company_id.is_some()
    }
}

/// A member of a company's team.
#[derive(Clone, Debug, FromRow)]
pub struct MemberRow {
    #[sqlx(flatten)]
    pub operator: Operator,
    pub has_password: bool,
    pub last_seen_at: Option<Timestamp>,
}

/// The password and the one-time codes of a person.
#[derive(Clone, Debug, FromRow)]
pub struct Password {
    pub operator_id: String,
    /// Argon2id in PHC form.
    pub hash: String,
    /// Sealed.
    pub totp_secret: String,
    /// The period of the last accepted code: each is accepted once.
    pub last_period: i64,
    /// Failed attempts since the last success.
    pub failures: i64,
    pub locked_until: Timestamp,
}

/// Sealed columns.
pub const SEALED: [SealedColumn; 1] = [TOTP_SECRET];
pub const TOTP_SECRET: SealedColumn = sealed_column!(
    operator_passwords(operator_id, operator_id).totp_secret,
    |_, id| format!("operator_passwords/{id}/totp_secret")
);

/// A role that operators defined.
#[derive(Clone, Debug, FromRow)]
pub struct OwnRole {
    pub name: String,
    pub permissions: Json<Vec<String>>,
}

pub async fn insert(tx: &mut Tx, operator: &Operator) -> Result<()> {
    tx.sql(
        "INSERT INTO operators (id, name, email, roles, companies, active, created_at, updated_at,
             company_id)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $7, $8)",
    )
    .params(params![
        &operator.id, &operator.name, &operator.email, &operator.roles, &operator.companies,
        operator.active, operator.created_at, &operator.company_id,
    ])
    .execute()
    .await
}

pub async fn update(tx: &mut Tx, operator: &Operator) -> Result<()> {
    tx.sql(
        "UPDATE operators SET name = $2, email = $3, roles = $4, companies = $5, active = $6,
             updated_at = $7
         WHERE id = $1",
    )
    .params(params![
        &operator.id, &operator.name, &operator.email, &operator.roles, &operator.companies,
        operator.active, operator.updated_at,
    ])
    .execute()
    .await
}

pub async fn list(tx: &mut Tx) -> Result<Vec<Operator>> {
    tx.sql("SELECT * FROM operators WHERE company_id IS NULL ORDER BY name").all().await
}

pub async fn list_members(tx: &mut Tx, company: &CompanyId) -> Result<Vec<MemberRow>> {
    tx.sql(
        "SELECT o.*, p.operator_id IS NOT NULL AS has_password,
             (SELECT MAX(t.last_used_at) FROM operator_tokens t WHERE t.operator_id = o.id)
                 AS last_seen_at
         FROM operators o LEFT JOIN operator_passwords p ON p.operator_id = o.id
         WHERE o.company_id = $1 ORDER BY o.email",
    )
    .params(params![company])
    .all()
    .await
}

/// Locks the members of a company, so that of two concurrent changes the second one sees the first.
pub async fn lock_members(tx: &mut Tx, company: &CompanyId) -> Result<Vec<Operator>> {
    tx.sql("SELECT * FROM operators WHERE company_id = $1 ORDER BY id FOR UPDATE")
        .params(params![company])
        .all()
        .await
}

pub async fn lock(tx: &mut Tx, id: &str) -> Result<Option<Operator>> {
    tx.sql("SELECT * FROM operators WHERE id = $1 FOR UPDATE").bind(id).optional().await
}

pub async fn find(tx: &mut Tx, id: &str) -> Result<Option<Operator>> {
    tx.sql("SELECT * FROM operators WHERE id = $1").bind(id).optional().await
}

/// Returns the active operator of a token or session that is neither revoked nor expired. A session
/// must have been used since `used_since`.
pub async fn find_by_token(
    tx: &mut Tx,
    digest: &str,
    now: Timestamp,
    used_since: Timestamp,
) -> Result<Option<TokenHolder>> {
    tx.sql(
        "SELECT o.*, t.id AS token_id, t.last_used_at
         FROM operator_tokens t JOIN operators o ON o.id = t.operator_id
         WHERE t.digest = $1 AND t.revoked_at IS NULL
           AND (t.expires_at IS NULL OR t.expires_at > $2) AND o.active
           AND (t.kind = 'token'
               OR t.kind = 'session' AND COALESCE(t.last_used_at, t.created_at) > $3)",
    )
    .params(params![digest, now, used_since])
    .optional()
    .await
}

/// Returns the active operator of an invitation that was not used and has not expired.
pub async fn find_by_invitation(
    tx: &mut Tx,
    digest: &str,
    now: Timestamp,
) -> Result<Option<TokenHolder>> {
    tx.sql(
        "SELECT o.*, t.id AS token_id, t.last_used_at
         FROM operator_tokens t JOIN operators o ON o.id = t.operator_id
         WHERE t.digest = $1 AND t.kind = 'invitation' AND t.revoked_at IS NULL
           AND t.expires_at > $2 AND o.active",
    )
    .params(params![digest, now])
    .optional()
    .await
}

/// Returns the active operator or, with `is_member`, the active member with this e-mail address in
/// lower case.
pub async fn find_by_email(tx: &mut Tx, email: &str, is_member: bool) -> Result<Option<Operator>> {
    tx.sql(
        "SELECT * FROM operators
         WHERE LOWER(email) = $1 AND active AND (company_id IS NOT NULL) = $2",
    )
    .params(params![email, is_member])
    .optional()
    .await
}

/// Returns the operator of an account at an OpenID provider.
pub async fn find_by_identity(
    tx: &mut Tx,
    issuer: &str,
    subject: &str,
) -> Result<Option<Operator>> {
    tx.sql(
        "SELECT o.* FROM operator_identities i JOIN operators o ON o.id = i.operator_id
         WHERE i.issuer = $1 AND i.subject = $2",
    )
    .params(params![issuer, subject])
    .optional()
    .await
}

/// Returns the subject of an operator's account at an OpenID provider.
pub async fn find_subject(tx: &mut Tx, operator: &str, issuer: &str) -> Result<Option<String>> {
    tx.sql("SELECT subject FROM operator_identities WHERE operator_id = $1 AND issuer = $2")
        .params(params![operator, issuer])
        .optional_value()
        .await
}

pub async fn insert_identity(
    tx: &mut Tx,
    operator: &str,
    (issuer, subject): (&str, &str),
    now: Timestamp,
) -> Result<()> {
    tx.sql(
        "INSERT INTO operator_identities (operator_id, issuer, subject, created_at)
         VALUES ($1, $2, $3, $4)",
    )
    .params(params![operator, issuer, subject, now])
    .execute()
    .await
}

/// Deletes the accounts of an operator at all OpenID providers.
pub async fn delete_identities(tx: &mut Tx, operator: &str) -> Result<()> {
    tx.sql("DELETE FROM operator_identities WHERE operator_id = $1").bind(operator).execute().await
}

pub async fn find_password(tx: &mut Tx, operator: &str) -> Result<Option<Password>> {
    tx.sql("SELECT * FROM operator_passwords WHERE operator_id = $1")
        .bind(operator)
        .optional()
        .await
}

pub async fn lock_password(tx: &mut Tx, operator: &str) -> Result<Option<Password>> {
    tx.sql("SELECT * FROM operator_passwords WHERE operator_id = $1 FOR UPDATE")
        .bind(operator)
        .optional()
        .await
}

pub async fn upsert_password(tx: &mut Tx, password: &Password) -> Result<()> {
    tx.sql(
        "INSERT INTO operator_passwords (operator_id, hash, totp_secret, last_period, failures,
             locked_until)
         VALUES ($1, $2, $3, $4, $5, $6)
         ON CONFLICT (operator_id) DO UPDATE SET hash = $2, totp_secret = $3, last_period = $4,
             failures = $5, locked_until = $6",
    )
    .params(params![
        &password.operator_id, &password.hash, &password.totp_secret, password.last_period,
        password.failures, password.locked_until,
    ])
    .execute()
    .await
}

/// Ends the sessions and invitations of an operator.
pub async fn end_sessions(tx: &mut Tx, operator: &str, now: Timestamp) -> Result<()> {
    tx.sql(
        "UPDATE operator_tokens SET revoked_at = $2
         WHERE operator_id = $1 AND kind <> 'token' AND revoked_at IS NULL",
    )
    .params(params![operator, now])
    .execute()
    .await
}

/// Returns the roles of the active operators without a limit to companies that have a valid token
/// or can sign in: with an account of the issuer, or, if that is empty, with a password.
pub async fn list_usable_roles(
    tx: &mut Tx,
    now: Timestamp,
    issuer: &str,
) -> Result<Vec<Json<Vec<String>>>> {
    tx.sql(
        "SELECT o.roles FROM operators o
         WHERE o.active AND o.companies IS NULL AND (EXISTS (
             SELECT 1 FROM operator_tokens t
             WHERE t.operator_id = o.id AND t.kind = 'token' AND t.revoked_at IS NULL
               AND (t.expires_at IS NULL OR t.expires_at > $1))
           OR EXISTS (
             SELECT 1 FROM operator_identities i
             WHERE i.operator_id = o.id AND i.issuer = $2)
           OR $2 = '' AND EXISTS (
             SELECT 1 FROM operator_passwords p
             WHERE p.operator_id = o.id))",
    )
    .params(params![now, issuer])
    .values()
    .await
}

pub async fn insert_token(tx: &mut Tx, operator: &str, token: &Token, digest: &str) -> Result<()> {
    tx.sql(
        "INSERT INTO operator_tokens (operator_id, id, kind, digest, prefix, label, expires_at,
             created_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
    )
    .params(params![
        operator, &token.id, token.kind, digest, &token.prefix, &token.label, token.expires_at,
        token.created_at,
    ])
    .execute()
    .await
}

pub async fn list_tokens(tx: &mut Tx, operator: &str) -> Result<Vec<Token>> {
    tx.sql(
        "SELECT id, kind, prefix, label, last_used_at, expires_at, revoked_at, created_at
         FROM operator_tokens WHERE operator_id = $1 ORDER BY created_at, id",
    )
    .bind(operator)
    .all()
    .await
}

/// Revokes a token; `false` if it does not exist. An earlier revocation keeps its time.
pub async fn revoke_token(
    tx: &mut Tx,
    operator: &str,
    token: &str,
    now: Timestamp,
) -> Result<bool> {
    tx.sql(
        "UPDATE operator_tokens SET revoked_at = COALESCE(revoked_at, $3)
         WHERE operator_id = $1 AND id = $2",
    )
    .params(params![operator, token, now])
    .affects_one()
    .await
}

pub async fn record_token_use(
    tx: &mut Tx,
    operator: &str,
    token: &str,
    now: Timestamp,
) -> Result<()> {
    tx.sql("UPDATE operator_tokens SET last_used_at = $3 WHERE operator_id = $1 AND id = $2")
        .params(params![operator, token, now])
        .execute()
        .await
}

/// Returns whether the company of a member is not suspended.
pub async fn is_company_active(tx: &mut Tx, company: &CompanyId) -> Result<bool> {
    let active: Option<bool> = tx
        .sql("SELECT active FROM companies WHERE id = $1")
        .params(params![company])
        .optional_value()
        .await?;
    Ok(active.unwrap_or(false))
}

pub async fn company_exists(tx: &mut Tx, company: &CompanyId) -> Result<bool> {
    let found: Option<String> = tx
        .sql("SELECT id FROM companies WHERE id = $1")
        .params(params![company])
        .optional_value()
        .await?;
    Ok(found.is_some())
}

pub async fn list_roles(tx: &mut Tx) -> Result<Vec<OwnRole>> {
    tx.sql("SELECT name, permissions FROM operator_roles ORDER BY name").all().await
}

pub async fn upsert_role(
    tx: &mut Tx,
    name: &str,
    permissions: &[String],
    now: Timestamp,
) -> Result<()> {
    tx.sql(
        "INSERT INTO operator_roles (name, permissions, created_at, updated_at)
         VALUES ($1, $2, $3, $3)
         ON CONFLICT (name) DO UPDATE SET permissions = $2, updated_at = $3",
    )
    .params(params![name, Json(permissions.to_vec()), now])
    .execute()
    .await
}

pub async fn delete_role(tx: &mut Tx, name: &str) -> Result<bool> {
    tx.sql("DELETE FROM operator_roles WHERE name = $1").bind(name).affects_one().await
}
