//! The records of the fixture, by reference or name.

/// A record: its status before the upgrade and at its end, and all its events.
pub type Expected = (&'static str, &'static str, &'static str, &'static [&'static str]);

const PAID: &[&str] = &["payment.success"];
const REFUNDED: &[&str] = &["payment.success", "payment.refunded"];
pub const PAYMENTS: [Expected; 33] = [
    ("old-success", "success", "success", PAID),
    ("old-open", "pending", "success", PAID),
    ("old-failed", "failed", "failed", &["payment.failed"]),
    ("old-refunded", "refunded", "refunded", REFUNDED),
    ("old-refund-failed", "refunded", "refunded", REFUNDED),
    ("old-reversed", "refunded", "refunded", REFUNDED),
    ("old-lost", "pending", "success", PAID),
    ("old-resumed-twice", "success", "success", PAID),
    ("open", "pending", "success", PAID),
    ("abandoned", "pending", "pending", &[]),
    ("failed", "failed", "failed", &["payment.failed"]),
    ("failed-then-paid", "failed", "success", &["payment.failed", "payment.success"]),
    ("success", "success", "refunded", REFUNDED),
    ("lost", "pending", "success", PAID),
    ("lost-paid", "pending", "success", PAID),
    ("unreached", "pending", "success", PAID),
    ("unreached-abandoned", "pending", "pending", &[]),
    ("resumed", "pending", "success", PAID),
    ("resumed-first-page", "pending", "success", PAID),
    ("resumed-twice", "pending", "success", PAID),
    ("paid-unseen", "pending", "success", PAID),
    ("mismatched", "pending", "pending", &[]),
    ("reversed", "refunded", "refunded", REFUNDED),
    ("reversed-unseen", "success", "refunded", REFUNDED),
    ("refund-pending", "refunded", "refunded", REFUNDED),
    ("refund-lost", "success", "refunded", REFUNDED),
    ("refund-unreached", "success", "refunded", REFUNDED),
    ("refund-refused", "success", "refunded", REFUNDED),
    ("refund-leased", "success", "refunded", REFUNDED),
    ("leased", "pending", "success", PAID),
    ("own-open", "pending", "success", PAID),
    ("own-success", "success", "success", PAID),
    ("own-refund", "refunded", "refunded", REFUNDED),
];

const VALID: &[&str] = &["card.validation.success"];
pub const CARDS: [Expected; 20] = [
    ("default", "valid", "valid", VALID),
    ("second", "valid", "valid", VALID),
    ("old-duplicate", "duplicate removed", "duplicate removed", &[]),
    ("old-unverified", "pending removed", "pending removed", &[]),
    ("old-refund-failed", "valid", "valid", VALID),
    ("old-deleted", "valid removed", "valid removed", VALID),
    ("page", "pending", "valid", VALID),
    ("page-abandoned", "pending", "pending removed", &[]),
    ("lost", "pending", "valid", VALID),
    ("resumed", "pending", "valid", VALID),
    ("failed-then-paid", "failed", "valid", &["card.validation.failed", "card.validation.success"]),
    ("duplicate", "duplicate", "duplicate removed", &[]),
    ("paid-unseen", "pending", "valid", VALID),
    ("mismatched", "pending", "failed removed", &["card.validation.failed"]),
    ("unusable", "unusable", "unusable removed", &["card.validation.failed"]),
    ("refund-pending", "valid", "valid", VALID),
    ("refund-lost", "valid", "valid", VALID),
    ("refund-unreached", "valid", "valid", VALID),
    ("refund-not-asked", "valid", "valid", VALID),
    ("deleted", "valid removed", "valid removed", VALID),
];

const REPAID: &[&str] = &["recollection.success"];
const UNPAID: &[&str] = &["recollection.failed"];
const REVERSED: &[&str] = &["recollection.success", "recollection.reversed"];
const PAID_LATE: &[&str] = &["recollection.failed", "recollection.success"];
pub const RECOLLECTIONS: [Expected; 32] = [
    ("old-manual", "success", "success", REPAID),
    ("old-page", "success", "success", REPAID),
    ("old-page-open", "pending", "success", REPAID),
    ("old-card", "success", "success", REPAID),
    ("old-card-reversed", "success", "failed", REVERSED),
    ("old-card-failed", "failed", "failed", UNPAID),
    ("old-debit-success", "success", "success", REPAID),
    ("old-debit-failed", "failed", "failed", UNPAID),
    ("old-challenge", "pending", "success", REPAID),
    ("auto-1", "success", "success", REPAID),
    ("auto-2", "failed", "failed", UNPAID),
    ("auto-3", "pending", "pending", &[]),
    ("page", "pending", "success", REPAID),
    ("page-abandoned", "pending", "pending", &[]),
    ("page-lost", "pending", "success", REPAID),
    ("page-unreached", "pending", "success", REPAID),
    ("page-resumed", "pending", "success", REPAID),
    ("page-resumed-first", "pending", "success", REPAID),
    ("page-resumed-twice", "pending", "success", REPAID),
    ("page-failed-then-paid", "failed", "success", PAID_LATE),
    ("page-paid-unseen", "pending", "success", REPAID),
    ("page-mismatched", "pending", "pending", &[]),
    ("page-leased", "pending", "success", REPAID),
    ("card-success", "success", "success", REPAID),
    ("card-pending", "pending", "success", REPAID),
    ("card-challenge", "pending", "success", REPAID),
    ("card-lost", "pending", "success", REPAID),
    ("card-unreached", "pending", "success", REPAID),
    ("card-challenge-abandoned", "pending", "pending", &[]),
    ("debit-pending", "pending", "success", REPAID),
    ("debit-declined", "pending", "failed", UNPAID),
    ("debit-processing", "pending", "success", REPAID),
];

/// The refund of a payment or card: its state before the upgrade and at its end. `""`: none.
pub type ExpectedRefund = (&'static str, &'static str, &'static str);

pub const PAYMENT_REFUNDS: [ExpectedRefund; 9] = [
    ("success", "", "done"),
    ("old-refunded", "done", "done"),
    ("old-refund-failed", "failed", "failed"),
    ("refund-pending", "pending", "done"),
    ("refund-lost", "requested", "done"),
    ("refund-unreached", "requested", "done"),
    ("refund-refused", "failed", "done"),
    ("refund-leased", "requested", "done"),
    ("own-refund", "pending", "done"),
];
pub const CARD_REFUNDS: [ExpectedRefund; 19] = [
    ("default", "done", "done"),
    ("second", "done", "done"),
    ("old-duplicate", "done", "done"),
    ("old-unverified", "", "done"),
    ("old-refund-failed", "pending", "failed"),
    ("old-deleted", "done", "done"),
    ("page", "", "done"),
    ("lost", "", "done"),
    ("resumed", "", "done"),
    ("failed-then-paid", "", "done"),
    ("duplicate", "pending", "done"),
    ("paid-unseen", "", "done"),
    ("mismatched", "", "done"),
    ("unusable", "pending", "done"),
    ("refund-pending", "pending", "done"),
    ("refund-lost", "requested", "done"),
    ("refund-unreached", "requested", "done"),
    ("refund-not-asked", "requested", "done"),
    ("deleted", "requested", "done"),
];

/// Differences that operators see at the end.
pub const EXCEPTIONS: [(&str, &str); 8] = [
    ("auto-3", "unverified_charge"),
    ("card-challenge-abandoned", "unverified_charge"),
    ("mismatched", "amount_mismatch"),
    ("old-card-reversed", "repayment_reversed"),
    ("old-resumed-twice", "paid_twice"),
    ("page-mismatched", "amount_mismatch"),
    ("page-resumed-twice", "repaid_twice"),
    ("resumed-twice", "paid_twice"),
];
