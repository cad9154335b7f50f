//! Bulk creation of users.

use super::{
    super::{FEATURE, User, import, table},
    fields::NewUser,
};
use crate::tenants::prelude::*;
use tollhouse_http::request::body::Upload;

const MAX_ROWS: usize = 1_000;

fields! {
    /// Users to create. A user whose e-mail address or `user_id` exists, or repeats an earlier one,
    /// is skipped.
    Body NewUsers {
        users: Rows<NewUser, MAX_ROWS>,
    }
}

pub async fn create(
    State(app): State<App>,
    AuthenticatedCompany(company): AuthenticatedCompany,
    run: IdempotentRequest,
    upload: Upload<NewUsers>,
) -> Result<MessageResponse> {
    company.check_feature(FEATURE)?;
    let users = read_users(&app, &company, &upload)?;
    import::import(&app, &company, users, run.name("user")).await?;
    Ok(MessageResponse("Users created successfully"))
}

fn read_users(app: &App, company: &Company, upload: &Upload<NewUsers>) -> Result<Vec<User>> {
    let rows = match upload {
        Upload::Json(body) => body.read()?.users,
        Upload::Form(None) => return Err(Error::invalid("the csv field is required")),
        Upload::Form(Some(file)) => {
            let rows = table::parse_rows(file.name.as_deref(), &file.bytes, MAX_ROWS)?;
            if rows.is_empty() {
                return Err(Error::invalid("the users field is required"));
            }
            (1..).zip(rows).map(|(row, values)| Fields::of_row(row, values)).collect()
        }
    };
    let read = |row| Ok(NewUser::read(row, app)?.into_user(app, &company.id));
    rows.iter().map(read).collect()
}
