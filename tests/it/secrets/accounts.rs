//! A virtual account, and the holder of a bank account.

use serde_json::json;

use super::Lab;

pub const BANKS: &str = "GET /api/v1/account/banks/{provider}/{currency}";
pub const DELETE: &str = "DELETE /api/v1/virtual-account/delete/{virtual_account}";
const NUMBER: &str = "22233344455";
/// The holder of every account at the simulator.
const HOLDER: &str = "TEST CUSTOMER";

/// Opens a virtual account, and resolves the holder of another one.
pub async fn open(lab: &Lab) {
    assert_eq!(lab.send("POST /internal/v1/plugins", artifacts::PROVIDER_C).await["error"], false);
    let credentials = json!({
        "api_key": "MK_TEST_SECRETS0001", "secret_key": "the_secret_at_monnify",
        "contract_code": "4934121686", "base_url": format!("{}/monnify", lab.simulators.url()),
    });
    let before = lab.named("provider");
    lab.name("provider", &json!("provider_c"));
    lab.call("PUT /internal/v1/providers/{provider}", json!({ "credentials": credentials })).await;
    lab.name("currency", &json!("NGN"));
    assert_eq!(lab.send(BANKS, "").await["error"], false);
    let order = json!({
        "user_id": "ada", "currency": "NGN", "payment_service": "provider_c",
        "identity": { "type": "bvn", "number": NUMBER },
    });
    let account = lab.call("POST /api/v1/virtual-account/create", order).await;
    lab.name("virtual_account", &account["id"]);
    for number in ["0123456789", "0001234567"] {
        let enquiry = json!({
            "bank_code": "058", "account_number": number, "payment_service": "provider_c",
        });
        lab.send("POST /api/v1/account/resolve", enquiry.to_string()).await;
    }
    lab.personal.lock().unwrap().extend([NUMBER.to_owned(), HOLDER.to_owned()]);
    lab.name("provider", &json!(before));
}
