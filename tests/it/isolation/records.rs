//! Routes that name a record of a company.

use super::{CompanyRecords, text};

pub type Names = fn(&CompanyRecords) -> Vec<&str>;

/// Every route that names a record, and the names of the records of company A.
pub const RECORDS: &[(&str, Names)] = &[
    ("/api/v1/user/fetch/{email_or_id}", |a| a.of_user()),
    ("/api/v1/user/edit/{user_id}", |a| a.of_user()),
    ("/api/v1/user/email-verification/send/{user_id}", |a| a.of_user()),
    ("/api/v1/user/email-verification/verify/{user_id}", |a| a.of_user()),
    ("/api/v1/user/phone-verification/send/{user_id}", |a| a.of_user()),
    ("/api/v1/user/phone-verification/verify/{user_id}", |a| a.of_user()),
    ("/api/v1/kyc/uid/send-verification/{uid_id}", |a| vec![&a.uid]),
    ("/api/v1/kyc/uid/verify/{uid_id}", |a| vec![&a.uid]),
    ("/api/v1/kyc/uid/list/{user_id}", |a| a.of_user()),
    ("/api/v1/card/verify/{card}", |a| vec![text(&a.card, "id")]),
    ("/api/v1/card/list/{user_id}", |a| a.of_user()),
    ("/api/v1/card/fetch/{card}", |a| vec![text(&a.card, "id")]),
    ("/api/v1/card/default/set/{card}", |a| vec![text(&a.card, "id")]),
    ("/api/v1/card/delete/{card}", |a| vec![text(&a.card, "id")]),
    ("/api/v1/virtual-account/fetch/{virtual_account}", |a| vec![&a.virtual_account]),
    ("/api/v1/virtual-account/list/{user_id}", |a| a.of_user()),
    ("/api/v1/virtual-account/delete/{virtual_account}", |a| vec![&a.virtual_account]),
    ("/api/v1/direct-debit/fetch/{direct_debit}", |a| vec![text(&a.mandate, "id")]),
    ("/api/v1/direct-debit/list/{user_id}", |a| a.of_user()),
    ("/api/v1/direct-debit/delete/{direct_debit}", |a| vec![text(&a.mandate, "id")]),
    ("/api/v1/recollection/verify/{reference}", |a| a.of_recollection()),
    ("/api/v1/recollection/fetch/{recollection}", |a| a.of_recollection()),
    ("/api/v1/recollection/fetch/reference/{reference}", |a| a.of_recollection()),
    ("/internal/v1/companies/{company}/card-refunds/{refund}/retry", |a| vec![&a.refund]),
    ("/internal/v1/companies/{company}/exceptions/{exception}", |a| vec![&a.exception]),
    ("/internal/v1/companies/{company}/exceptions/{exception}/resolve", |a| vec![&a.exception]),
    ("/internal/v1/companies/{company}/accounts/{account}/days", |a| vec![&a.account]),
    ("/internal/v1/companies/{company}/accounts/{account}/days/{day}", |a| vec![&a.account]),
    ("/internal/v1/companies/{company}/disputes/{dispute}", |a| vec![&a.dispute]),
    ("/internal/v1/companies/{company}/disputes/{dispute}/answer", |a| vec![&a.dispute]),
    ("/api/v1/payment/verify/{reference}", |a| a.of_payments("reference")),
    ("/api/v1/payment/fetch/{id}", |a| a.of_payments("id")),
    ("/api/v1/payment/fetch/reference/{reference}", |a| a.of_payments("reference")),
    ("/internal/v1/companies/{company}/keys/{key}", |a| vec![text(&a.key, "id")]),
    ("/internal/v1/companies/{company}/keys/{key}/rotate", |a| vec![text(&a.key, "id")]),
    ("/internal/v1/companies/{company}/event-endpoints/{endpoint}", |a| vec![&a.endpoint]),
    ("/internal/v1/companies/{company}/event-endpoints/{endpoint}/secret/rotate", |a| {
        vec![&a.endpoint]
    }),
    ("/internal/v1/companies/{company}/members/{member}", |a| vec![&a.member]),
    ("/internal/v1/companies/{company}/members/{member}/invite", |a| vec![&a.member]),
    ("/internal/v1/companies/{company}/events/{event}/attempts", |a| vec![&a.event]),
    ("/internal/v1/companies/{company}/events/{event}/redeliver", |a| vec![&a.event]),
    ("/internal/v1/companies/{company}/users/{email_or_id}", |a| a.of_user()),
    ("/internal/v1/companies/{company}/users/{user_id}/cards", |a| a.of_user()),
    ("/internal/v1/companies/{company}/users/{user_id}/direct-debits", |a| a.of_user()),
    ("/internal/v1/companies/{company}/users/{user_id}/virtual-accounts", |a| a.of_user()),
    ("/internal/v1/companies/{company}/users/{user_id}/identities", |a| a.of_user()),
    ("/internal/v1/companies/{company}/users/{user_id}/loans", |a| a.of_user()),
    ("/internal/v1/companies/{company}/recollections/{recollection}", |a| a.of_recollection()),
    ("/internal/v1/companies/{company}/recollections/{recollection}/routing", |a| {
        a.of_recollection()
    }),
    ("/internal/v1/companies/{company}/recollections/reference/{reference}", |a| {
        a.of_recollection()
    }),
    ("/internal/v1/companies/{company}/payments/{payment}", |a| a.of_payments("id")),
    ("/internal/v1/companies/{company}/payments/reference/{reference}", |a| {
        a.of_payments("reference")
    }),
    ("/internal/v1/companies/{company}/payments/{payment}/timeline", |a| a.of_payments("id")),
    ("/internal/v1/companies/{company}/payments/{payment}/routing", |a| a.of_payments("id")),
    ("/internal/v1/companies/{company}/payments/{payment}/verify", |a| a.of_payments("id")),
    ("/internal/v1/companies/{company}/payments/{payment}/refund", |a| a.of_payments("id")),
];
