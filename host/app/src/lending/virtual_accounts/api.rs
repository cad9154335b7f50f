//! The endpoints of virtual accounts.

use super::{INTERFACE, View, VirtualAccount, VirtualAccountId, not_found, open, store};
use crate::{lending::loans::LoanId, money::prelude::*};

const FEATURE: &str = "payments";
const VIRTUAL_ACCOUNTS: providers::Feature = providers::Feature {
    provider: "a provider with virtual accounts",
    is_supported: |provider| provider.exports(INTERFACE),
};

fields! {
    /// A virtual account to open.
    Body NewVirtualAccount(body, app: &App, company: &Company) {
        /// The `user_id` or internal id of the payer.
        user_id: Text<100>,
        /// A currency that the provider supports.
        #[schemars(extend("examples" = ["NGN"]))]
        currency: Text<3> as Currency => Ok(Currency::from(currency)),
        /// The loan that transfers repay. Default: none, and transfers are payments.
        loan: Option<Text<100>> as Option<LoanId> => Ok(loan.map(LoanId::from)),
        /// A number that identifies the payer, if the provider requires one. It is sent to the
        /// provider and not stored.
        identity: Option<Body<Identity>>,
        /// The provider. Default: the company's provider, else the service's.
        #[schemars(extend("examples" = ["provider_c"]))]
        payment_service: Option<Text<100>> as String
            => providers::choose_provider_of(
                &VIRTUAL_ACCOUNTS, app, company, body, &currency, payment_service.as_deref()
            ),
    }
}

fields! {
    /// A number by which a register identifies a person.
    #[schemars(rename = "PayerIdentity")]
    Body Identity {
        /// The identity type, for example `bvn`.
        kind as "type": Text<40>,
        number: Text<50>,
    }
}

async fn find_or_not_found(
    app: &App,
    company: &Company,
    id: &VirtualAccountId,
) -> Result<VirtualAccount> {
    let found = app.store.select(async |tx| store::find(tx, &company.id, id).await).await?;
    found.ok_or_else(not_found)
}

pub async fn create(
    State(app): State<App>,
    AuthenticatedCompany(company): AuthenticatedCompany,
    body: Body<NewVirtualAccount>,
) -> Result<DataResponse<View>> {
    company.check_feature(FEATURE)?;
    let order = NewVirtualAccount::read(&body, &app, &company)?;
    let account = open::open(&app, &company, order).await?;
    DataResponse::data(account.view(), "Virtual account created successfully")
}

pub async fn fetch(
    State(app): State<App>,
    AuthenticatedCompany(company): AuthenticatedCompany,
    Path(account): Path<VirtualAccountId>,
) -> Result<DataResponse<View>> {
    company.check_feature(FEATURE)?;
    let account = find_or_not_found(&app, &company, &account).await?;
    DataResponse::data(account.view(), "Virtual account fetched successfully")
}

pub async fn list(
    State(app): State<App>,
    AuthenticatedCompany(company): AuthenticatedCompany,
    RecordId(user_id): RecordId<String>,
) -> Result<DataResponse<Vec<View>>> {
    company.check_feature(FEATURE)?;
    let read = async |tx: &mut Tx| -> Result<Vec<VirtualAccount>> {
        let user = users::get_by_email_or_id(tx, &company.id, &user_id).await?;
        Ok(store::list_for_user(tx, &company.id, &user.id).await?)
    };
    let accounts = app.store.read(read).await?;
    let accounts = accounts.into_iter().map(VirtualAccount::view).collect();
    DataResponse::data(accounts, "Virtual accounts retrieved successfully")
}

pub async fn delete(
    State(app): State<App>,
    AuthenticatedCompany(company): AuthenticatedCompany,
    Path(account): Path<VirtualAccountId>,
) -> Result<MessageResponse> {
    company.check_feature(FEATURE)?;
    let account = find_or_not_found(&app, &company, &account).await?;
    open::close(&app, account).await?;
    Ok(MessageResponse("Virtual account deleted successfully"))
}
