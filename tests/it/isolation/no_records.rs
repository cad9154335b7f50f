//! Routes whose parameters name no record of a company.

pub const NOTIFICATION: &str =
    "/api/v1/notifications/{provider}/{account}/{company}/{charge_or_refund}/{signature}";
pub const PAY_PAGE: &str = "/pay/{company}/{charge}/{signature}";

/// Routes whose parameters name no record of a company. This list may only shrink.
pub const NO_RECORDS: &[(&str, &str)] = &[
    ("/docs/{file}", "a file of the viewer, the same for everyone"),
    (
        "/api/v1/notifications/{provider}/{account}",
        "authenticated by signature, in `isolation/notifications.rs`",
    ),
    (NOTIFICATION, "authenticated by the host's signature, in `conformance/sessions.rs`"),
    (PAY_PAGE, "named by a signed link, in `conformance/sessions.rs`"),
    ("/api/v1/user/file/{file}", "named by a signed link, in `user_export.rs`"),
    ("/api/v1/account/banks/{provider}/{currency}", "a plugin, which all share"),
    ("/api/v1/kyc/{country}/{*path}", "an identity type, which all share"),
    ("/internal/v1/companies/{company}/loans/{loan}", "an internal consumer's id, in `loans.rs`"),
    (
        "/internal/v1/companies/{company}/loans/{loan}/attempts",
        "an internal consumer's id, in `collection_policies.rs`",
    ),
    (
        "/internal/v1/companies/{company}/direct-debits/{direct_debit}",
        "an internal consumer's id, in `loans.rs`",
    ),
    ("/internal/v1/identities/{country}/{identity}", "an identity type, which all share"),
    ("/internal/v1/companies/{company}/identities/{country}/{identity}", "a type, which all share"),
    ("/internal/v1/companies/{company}/providers/{provider}", "a plugin, which all share"),
    ("/internal/v1/providers/{provider}", "a plugin, which all share"),
    ("/internal/v1/companies/{company}/providers/{provider}/test", "a plugin, which all share"),
    ("/internal/v1/providers/{provider}/test", "a plugin, which all share"),
    ("/internal/v1/exceptions/{service_exception}", "exceptions of no company"),
    ("/internal/v1/exceptions/{service_exception}/resolve", "exceptions of no company"),
    ("/internal/v1/accounts/{account}/days", "only operators read them"),
    ("/internal/v1/accounts/{account}/days/{day}", "only operators read them"),
    ("/internal/v1/accounts/{account}/days/{day}/close", "only operators close them"),
    ("/internal/v1/accounts/{account}/reconcile", "only operators run it"),
    ("/internal/v1/plugins/{plugin}", "plugins serve everyone"),
    ("/internal/v1/plugins/{plugin}/activate", "plugins serve everyone"),
    ("/internal/v1/plugins/{plugin}/canary", "plugins serve everyone"),
    ("/internal/v1/plugins/{plugin}/rollback", "plugins serve everyone"),
    ("/internal/v1/plugins/{plugin}/deactivate", "plugins serve everyone"),
    ("/internal/v1/plugins/{plugin}/{digest}", "plugins serve everyone"),
    ("/internal/v1/plugins/{plugin}/recordings", "only operators read them"),
    ("/internal/v1/plugins/{plugin}/recordings/{recording}", "only operators read them"),
    ("/internal/v1/publishers/{publisher}", "plugins serve everyone"),
    ("/internal/v1/operators/{operator}", "operators belong to the service"),
    ("/internal/v1/operators/{operator}/invite", "operators belong to the service"),
    ("/internal/v1/operators/{operator}/tokens", "operators belong to the service"),
    ("/internal/v1/operators/{operator}/tokens/{token}", "operators belong to the service"),
    ("/internal/v1/me/views/{list}/{view}", "the caller's own, in `views.rs`"),
    ("/internal/v1/roles/{role}", "operators belong to the service"),
    ("/internal/v1/approvals/{approval}/approve", "operators belong to the service"),
    ("/internal/v1/approvals/{approval}/reject", "operators belong to the service"),
];
