//! PostgreSQL roles: one owns and migrates the tables; another serves and cannot alter them.

use std::str::FromStr;

use sqlx::{AssertSqlSafe, Connection as _, Executor, migrate::Migrator};
use sqlx_postgres::{PgConnectOptions, PgConnection};

use crate::store::{Error, Result, postgres::connect, schema};

/// The roles that a host may serve as: those that cannot alter the tables, or any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RolePolicy {
    NonOwner,
    Any,
}

/// Privileges of a host on tables where it must not have [`ROW_PRIVILEGES`].
const GRANTS: [(&str, &str); 8] = [
    ("_sqlx_migrations", "SELECT"),
    ("audit_log", "SELECT, INSERT"),
    ("ledger_transactions", "SELECT, INSERT"),
    ("ledger_entries", "SELECT, INSERT"),
    ("ledger_deltas", "SELECT"),
    ("ledger_balances", "SELECT, INSERT, UPDATE"),
    ("list_counts", "SELECT"),
    ("list_deltas", "SELECT"),
];
const ROW_PRIVILEGES: &str = "SELECT, INSERT, UPDATE, DELETE";

/// Applies the missing migrations; concurrent calls wait for each other.
pub(in crate::store) async fn migrate(url: &str, schema: &Migrator) -> Result<()> {
    let (mut connection, missing) = count_missing(url, schema).await?;
    if missing > 0 {
        schema.run(&mut connection).await?;
    }
    Ok(connection.close().await?)
}

/// Connects. Returns the connection and the number of missing migrations.
pub(in crate::store) async fn count_missing(
    url: &str,
    schema: &Migrator,
) -> Result<(PgConnection, usize)> {
    let mut connection = connect(&PgConnectOptions::from_str(url)?).await?;
    let applied = schema::applied_in_postgres(&mut connection).await?;
    Ok((connection, schema::count_missing(schema, &applied)?))
}

/// Grants `role`, and each role of an earlier call, exactly what a host needs. Returns these roles.
pub(in crate::store) async fn grant_host_roles(
    url: &str,
    role: Option<&str>,
) -> Result<Vec<String>> {
    let mut connection = connect(&PgConnectOptions::from_str(url)?).await?;
    let mut roles = previous_grantees(&mut connection).await?;
    if let Some(role) = role.filter(|role| !roles.iter().any(|known| known == role)) {
        roles.push(role.to_owned());
    }
    for role in &roles {
        check_grantee(&mut connection, role).await?;
        // Safe: the server quotes the names.
        let statements = AssertSqlSafe(grant_statements(&mut connection, role).await?);
        connection.execute(statements).await?;
    }
    connection.close().await?;
    Ok(roles)
}

/// Returns the roles to which this role granted default privileges in this schema.
async fn previous_grantees(connection: &mut PgConnection) -> Result<Vec<String>> {
    let roles = "SELECT DISTINCT grantee.rolname::text FROM pg_default_acl d
         JOIN pg_roles owner ON owner.oid = d.defaclrole
         JOIN pg_namespace n ON n.oid = d.defaclnamespace
         CROSS JOIN LATERAL aclexplode(d.defaclacl) acl
         JOIN pg_roles grantee ON grantee.oid = acl.grantee
         WHERE owner.rolname = current_user AND n.nspname = current_schema()
             AND d.defaclobjtype = 'r' AND grantee.oid <> owner.oid
         ORDER BY 1";
    Ok(sqlx::query_scalar(roles).fetch_all(connection).await?)
}

/// Fails if grants to `role` have no effect: it does not exist, owns the tables, or is a superuser.
pub(in crate::store) async fn check_host_role(url: &str, role: &str) -> Result<()> {
    let mut connection = connect(&PgConnectOptions::from_str(url)?).await?;
    check_grantee(&mut connection, role).await?;
    Ok(connection.close().await?)
}

async fn check_grantee(connection: &mut PgConnection, role: &str) -> Result<()> {
    let found = "SELECT rolsuper OR pg_has_role(oid, current_user, 'MEMBER') FROM pg_roles WHERE rolname = $1";
    let found = sqlx::query_scalar(found).bind(role).fetch_optional(connection).await?;
    let wrong = match found {
        None => format!("the role {role} does not exist: create it with CREATE ROLE"),
        Some(true) => {
            format!("{role} owns the tables, or is a superuser: name another role for hosts")
        }
        Some(false) => return Ok(()),
    };
    Err(Error::Misconfigured(wrong))
}

/// Grants in one transaction, so that a serving host never lacks a privilege.
async fn grant_statements(connection: &mut PgConnection, role: &str) -> Result<String> {
    let names = "SELECT quote_ident(current_schema()), quote_ident($1)";
    let (place, role): (String, String) =
        sqlx::query_as(names).bind(role).fetch_one(&mut *connection).await?;
    let tables = "SELECT c.relname::text, quote_ident(c.relname), c.relkind = 'v' FROM pg_class c
         JOIN pg_namespace n ON n.oid = c.relnamespace
         WHERE n.nspname = current_schema() AND c.relkind IN ('r', 'p', 'v')
             AND pg_has_role(c.relowner, 'USAGE')
         ORDER BY 1";
    let tables: Vec<(String, String, bool)> = sqlx::query_as(tables).fetch_all(connection).await?;
    if tables.iter().all(|(name, ..)| name != GRANTS[0].0) {
        let text =
            "the tables belong to another role: as a superuser, REASSIGN OWNED BY it TO this one";
        return Err(Error::Misconfigured(text.to_owned()));
    }
    let each = tables.into_iter().map(|(name, quoted, is_view)| {
        let table = GRANTS.iter().find(|(table, _)| *table == name);
        let otherwise = if is_view { "SELECT" } else { ROW_PRIVILEGES };
        let privileges = table.map_or(otherwise, |(_, privileges)| privileges);
        format!(
            "REVOKE ALL ON {place}.{quoted} FROM {role};
             GRANT {privileges} ON {place}.{quoted} TO {role};"
        )
    });
    Ok(format!(
        "BEGIN;
         SELECT pg_advisory_xact_lock(hashtext('tollhouse grants'));
         GRANT USAGE ON SCHEMA {place} TO {role};
         GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA {place} TO {role};
         GRANT EXECUTE ON FUNCTION {place}.fold_ledger_account, {place}.fold_list_deltas,
             {place}.analyze_grown_table TO {role};
         ALTER DEFAULT PRIVILEGES IN SCHEMA {place} GRANT {ROW_PRIVILEGES} ON TABLES TO {role};
         ALTER DEFAULT PRIVILEGES IN SCHEMA {place} GRANT USAGE, SELECT ON SEQUENCES TO {role};
         {}
         COMMIT",
        each.collect::<String>()
    ))
}

/// Fails if migrations are missing or differ, or if `role` forbids the URL's role to alter tables.
pub(in crate::store) async fn check(url: &str, schema: &Migrator, role: RolePolicy) -> Result<()> {
    let (mut connection, missing) = count_missing(url, schema).await?;
    if missing > 0 {
        return Err(Error::Misconfigured(format!(
            "the database lacks {missing} migrations, or its role may not read the tables: run \
             `tollhouse migrate` as the role that owns them, with --host-role for the role of the hosts"
        )));
    }
    let owns = "SELECT current_user::text, EXISTS (
             SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
             WHERE n.oid = m.relnamespace AND c.relkind IN ('r', 'p', 'v')
                 AND (pg_has_role(c.relowner, 'MEMBER') OR pg_has_role(n.nspowner, 'MEMBER')))
         FROM pg_class m WHERE m.oid = to_regclass('_sqlx_migrations')";
    // A superuser is a member of every role.
    let (name, owns): (String, bool) = sqlx::query_as(owns).fetch_one(&mut connection).await?;
    connection.close().await?;
    if owns && role == RolePolicy::NonOwner {
        return Err(Error::Misconfigured(format!(
            "the database role {name} owns the tables, or is a superuser: a bug in the host could remove the protections of the ledger. Use another role, to which `tollhouse migrate --host-role` grants the required privileges, or set database_as_owner"
        )));
    }
    Ok(())
}
