//! Account enquiry: looks up the names of the holders of bank accounts.

use super::prelude::*;
use tollhouse_plugins::{Bank, Credentials};

const FEATURE: &str = "payments";
/// The plugin interface that looks up account holders.
const INTERFACE: &str = "account-enquiry";
/// The request fields that an error of the provider may name.
const FIELDS: [&str; 2] = ["bank_code", "account_number"];

/// A bank.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Bank")]
pub struct BankView {
    code: String,
    name: String,
}

fields! {
    /// A bank account.
    Body AccountEnquiry(body, app: &App, company: &Company) {
        /// The code of the bank, from the list of banks.
        bank_code: Text<20>,
        account_number: Text<40>,
        /// The provider. Default: the company's provider, else the service's.
        #[schemars(extend("examples" = ["provider_c"]))]
        payment_service: Option<Text<100>> as String
            => choose_provider(app, company, body, payment_service.as_deref()),
    }
}

/// A bank account and its holder.
#[derive(Debug, Serialize, JsonSchema)]
pub struct AccountHolder {
    bank_code: String,
    account_number: String,
    /// The name of the holder.
    account_name: String,
    payment_service: String,
}

fn choose_provider(
    app: &App,
    company: &Company,
    body: &Fields,
    sent: Option<&str>,
) -> Result<String> {
    let name = providers::choose_provider(app, company, sent, body)?;
    match app.plugins.provider(&name, &company.id) {
        Ok(plugin) if !plugin.exports(INTERFACE) => {
            Err(body.must_be("payment_service", "a provider with account enquiry"))
        }
        _ => Ok(name),
    }
}

/// A provider with account enquiry, and its account.
struct Enquiry {
    name: String,
    provider: Provider,
    credentials: Credentials,
}

impl Enquiry {
    async fn open(app: &App, company: &Company, name: String) -> Result<Enquiry> {
        let provider = app.plugins.provider(&name, &company.id)?;
        if !provider.exports(INTERFACE) {
            return Err(Error::Invalid(format!("{name} does not support account enquiry")));
        }
        let resolve = async |tx: &mut Tx| providers::resolve(tx, company, &name).await;
        let credentials = app.store.read(resolve).await?.open_credentials(app)?;
        Ok(Enquiry { name, provider, credentials })
    }
}

pub async fn banks(
    State(app): State<App>,
    AuthenticatedCompany(company): AuthenticatedCompany,
    Path((provider, currency)): Path<(String, String)>,
) -> Result<DataResponse<Vec<BankView>>> {
    company.check_feature(FEATURE)?;
    let Enquiry { name, provider, credentials } = Enquiry::open(&app, &company, provider).await?;
    if !provider.manifest().currencies.contains(&currency) {
        return Err(Error::Invalid(format!("{name} does not support {currency}")));
    }
    let banks = provider.list_banks(&credentials, &currency).await;
    let banks = banks.map_err(|error| error.into_private_error(&name))?.into_iter();
    let banks = banks.map(|Bank { code, name }| BankView { code, name }).collect();
    DataResponse::data(banks, "Banks retrieved successfully")
}

/// Returns the name of an account's holder.
pub async fn resolve(
    State(app): State<App>,
    AuthenticatedCompany(company): AuthenticatedCompany,
    body: Body<AccountEnquiry>,
) -> Result<DataResponse<AccountHolder>> {
    company.check_feature(FEATURE)?;
    let AccountEnquiry { bank_code, account_number, payment_service } =
        AccountEnquiry::read(&body, &app, &company)?;
    let Enquiry { name, provider, credentials } =
        Enquiry::open(&app, &company, payment_service).await?;
    let holder = provider.resolve_account(&credentials, &bank_code, &account_number).await;
    let account_name = holder.map_err(|error| client_error(error, &name))?;
    let holder = AccountHolder { bank_code, account_number, account_name, payment_service: name };
    DataResponse::data(holder, "Account resolved successfully")
}

fn client_error(error: CallError, provider: &str) -> Error {
    match error.fault.category {
        FaultCategory::NotFound => Error::not_found("bank account not found"),
        FaultCategory::Invalid | FaultCategory::Refused => {
            let field = error.fault.detail("field").filter(|field| FIELDS.contains(field));
            Error::Invalid(match field {
                Some(field) => format!("the {field} field must be one that {provider} accepts"),
                None => format!("{provider} does not accept the bank_code or account_number field"),
            })
        }
        _ => error.into_private_error(provider),
    }
}
