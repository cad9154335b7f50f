use serde_json::json;

use super::{by_dojah, by_prembly, changed, contacts, details};

#[test]
fn a_firm_has_no_contact_for_one_time_passwords() {
    let record = json!({
        "rc_number": "092932", "company_name": "TEST COMPANY", "state": "LAGOS",
        "company_status": "ACTIVE", "city": "IKEJA", "branchAddress": "1 Example Street",
        "lga": "IKEJA", "email_address": "Info@Example.com", "phone": "08012345678",
        "company_address": "2 Example Street", "date_of_registration": "2001-01-01",
        "directors": [{"name": "ADA OBI", "designation": "DIRECTOR"}]
    });
    let published = json!({
        "rc_number": "092932", "company_name": "TEST COMPANY", "state": "LAGOS",
        "company_status": "ACTIVE", "city": "IKEJA", "branch_address": "1 Example Street",
        "lga": "IKEJA", "email": "info@example.com"
    });
    for data in [record.clone(), json!([record])] {
        let entry = by_prembly("cac", "cac", "data", data).unwrap();
        assert_eq!(details(&entry), published);
        assert_eq!(contacts(&entry), (Some("info@example.com"), None));
    }
    let less = json!({"state": null, "company_status": null, "city": null, "branch_address": null,
        "lga": null, "email": null});
    let record = json!({"rc_number": "092932", "company_name": "TEST COMPANY",
        "address": "2 Example Street", "date_of_registration": "2001-01-01"});
    let entry = by_dojah("cac", "kyc/cac", record).unwrap();
    assert_eq!(details(&entry), changed(&published, less));
    assert_eq!(contacts(&entry), (None, None));
}
