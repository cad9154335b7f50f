//! Refunds at a provider that accepts no reference for a refund. The request writes a note, by which
//! an earlier attempt whose response was lost is found in the list of the payment's refunds.

use crate::refunds::{Refund, RefundOrder};
use crate::types::{Fault, FaultCategory};

/// A refund in the provider's list.
pub struct ListedRefund {
    pub refund: Refund,
    /// The note of its request, or "".
    pub note: String,
    /// In the currency's minor unit; `None` if it cannot be read.
    pub amount: Option<u64>,
}

/// The requests of [`start`] to a provider.
pub trait NotedRefunds {
    /// Returns the provider's id of a payment, by service reference. Called if the order has none.
    fn find_transaction(service_ref: &str) -> Result<String, Fault>;

    /// Returns the transaction's refunds that did not fail, all of them or a fault.
    fn list(transaction: &str, order: &RefundOrder) -> Result<Vec<ListedRefund>, Fault>;

    /// Requests the refund with this note.
    fn request(transaction: &str, order: &RefundOrder, note: &str) -> Result<Refund, Fault>;

    /// Returns whether a refusal of [`request`](Self::request) reports an earlier refund, which the
    /// list may not have yet. Always `false` if the list is up to date.
    fn is_duplicate(_refusal: &Fault) -> bool {
        false
    }
}

/// Starts a refund, or returns an earlier attempt, which is looked for before the request and after
/// its refusal. `earlier` has the ids of other refunds if this is one of a part.
///
/// An earlier attempt has this refund's note, or its amount, whatever its origin. Beside a refund of
/// another amount, one of the whole payment is `refused` with the code `partly-refunded`. A refused
/// query does not show whether an earlier attempt exists, so it is `unavailable`.
pub fn start<P: NotedRefunds>(
    order: &RefundOrder,
    earlier: Option<&[String]>,
) -> Result<Refund, Fault> {
    let transaction = match order.transaction_id.as_str() {
        "" => query(P::find_transaction(&order.service_ref))?,
        known => known.to_owned(),
    };
    let find = || match query(P::list(&transaction, order)) {
        Err(fault) if fault.category == FaultCategory::NotFound => Ok(None),
        listed => find_attempt(&listed?, order, earlier),
    };
    if let Some(made) = find()? {
        return Ok(made);
    }
    let note = format!("{} {}", order.reason, identifier(order)).trim().to_owned();
    match P::request(&transaction, order, &note) {
        Err(refusal) if refusal.is_refusal() => {
            let is_duplicate = P::is_duplicate(&refusal);
            let refusal = if is_duplicate { refusal.into_unavailable() } else { refusal };
            find_after_refusal(find(), refusal)
        }
        result => result,
    }
}

fn identifier(order: &RefundOrder) -> String {
    format!("[{}]", order.refund_ref)
}

fn query<T>(result: Result<T, Fault>) -> Result<T, Fault> {
    result.map_err(|fault| match fault.category {
        FaultCategory::NotFound => fault,
        _ if fault.is_refusal() => fault.into_unavailable(),
        _ => fault,
    })
}

fn find_attempt(
    listed: &[ListedRefund],
    order: &RefundOrder,
    earlier: Option<&[String]>,
) -> Result<Option<Refund>, Fault> {
    let identifier = identifier(order);
    if let Some(made) = listed.iter().find(|item| item.note.contains(&identifier)) {
        return Ok(Some(made.refund.clone()));
    }
    let others = earlier.unwrap_or_default();
    for item in listed.iter().filter(|item| !others.contains(&item.refund.provider_id)) {
        let unreadable = || {
            Fault::unavailable("the amount of a refund cannot be read")
                .with_code("unexpected-answer")
        };
        if item.amount.ok_or_else(unreadable)? == order.amount.minor {
            return Ok(Some(item.refund.clone()));
        }
    }
    match earlier {
        None if !listed.is_empty() => {
            Err(Fault::refused("partly-refunded", "a part was already refunded at the provider"))
        }
        _ => Ok(None),
    }
}

/// The upstream may refuse a request because an earlier attempt is done meanwhile. If that is
/// unknown, the refusal is `unavailable`.
fn find_after_refusal(
    found: Result<Option<Refund>, Fault>,
    refusal: Fault,
) -> Result<Refund, Fault> {
    match found {
        Ok(Some(made)) => Ok(made),
        Ok(None) => Err(refusal),
        Err(fault) if fault.is_refusal() => Err(fault),
        Err(fault) => Err(fault.into_unavailable()),
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::mem::take;

    use super::*;
    use crate::refunds::RefundStatus;
    use crate::types::Money;

    type Listed = Result<Vec<ListedRefund>, Fault>;

    /// The lists before and after the request, and the response to the request.
    struct Provider {
        before: Listed,
        response: Result<Refund, Fault>,
        after: Listed,
        notes: Vec<String>,
    }

    thread_local! {
        static PROVIDER: RefCell<Option<Provider>> = const { RefCell::new(None) };
    }

    fn with_provider<T>(work: impl FnOnce(&mut Provider) -> T) -> T {
        PROVIDER.with_borrow_mut(|provider| work(provider.as_mut().expect("a provider")))
    }

    struct Fake;

    impl NotedRefunds for Fake {
        fn find_transaction(_: &str) -> Result<String, Fault> {
            Err(Fault::refused("", ""))
        }

        fn list(_: &str, _: &RefundOrder) -> Listed {
            with_provider(|provider| match provider.notes.is_empty() {
                true => std::mem::replace(&mut provider.before, Ok(Vec::new())),
                false => std::mem::replace(&mut provider.after, Ok(Vec::new())),
            })
        }

        fn request(_: &str, _: &RefundOrder, note: &str) -> Result<Refund, Fault> {
            with_provider(|provider| {
                provider.notes.push(note.to_owned());
                provider.response.clone()
            })
        }

        fn is_duplicate(refusal: &Fault) -> bool {
            refusal.code == "duplicate"
        }
    }

    fn order() -> RefundOrder {
        RefundOrder {
            service_ref: "T1".into(),
            transaction_id: "1".into(),
            refund_ref: "R1".into(),
            amount: Money { minor: 500, currency: "NGN".into() },
            reason: "Returned".into(),
        }
    }

    fn refund(id: &str) -> Refund {
        Refund {
            status: RefundStatus::Pending,
            provider_id: id.into(),
            message: String::new(),
            raw: "{}".into(),
        }
    }

    fn listed(id: &str, note: &str, amount: impl Into<Option<u64>>) -> ListedRefund {
        ListedRefund { refund: refund(id), note: note.into(), amount: amount.into() }
    }

    /// Starts a refund. Returns the id of the refund, or the category and the code of the fault, and
    /// the notes of the requests.
    fn run(
        order: &RefundOrder,
        earlier: Option<&[String]>,
        before: Listed,
        response: Result<Refund, Fault>,
        after: Listed,
    ) -> (String, Vec<String>) {
        PROVIDER.set(Some(Provider { before, response, after, notes: Vec::new() }));
        let outcome = match start::<Fake>(order, earlier) {
            Ok(made) => made.provider_id,
            Err(fault) => format!("{:?} {}", fault.category, fault.code),
        };
        (outcome, with_provider(|provider| take(&mut provider.notes)))
    }

    const UNREADABLE: &str = "FaultCategory::Unavailable unexpected-answer";

    #[test]
    fn an_earlier_attempt_is_returned_instead_of_a_second_refund() {
        let earlier = ["7".to_owned()];
        let part = Some(&earlier[..]);
        for (earlier, list, expected, requests) in [
            (None, vec![], "new", 1),
            (None, vec![listed("7", "x [R1]", None)], "7", 0),
            (None, vec![listed("7", "", 500)], "7", 0),
            (None, vec![listed("7", "", 400)], "FaultCategory::Refused partly-refunded", 0),
            (None, vec![listed("7", "[R11]", 400)], "FaultCategory::Refused partly-refunded", 0),
            (None, vec![listed("7", "", None)], UNREADABLE, 0),
            (part, vec![listed("7", "", 500)], "new", 1),
            (part, vec![listed("7", "", None), listed("8", "", 400)], "new", 1),
            (part, vec![listed("7", "", 500), listed("8", "", 500)], "8", 0),
            (part, vec![listed("8", "", 500), listed("9", "[R1]", 1)], "9", 0),
            (part, vec![listed("8", "", None)], UNREADABLE, 0),
        ] {
            let (outcome, notes) = run(&order(), earlier, Ok(list), Ok(refund("new")), Ok(vec![]));
            assert_eq!((outcome.as_str(), notes.len()), (expected, requests));
            assert!(notes.iter().all(|note| note == "Returned [R1]"), "{notes:?}");
        }
    }

    #[test]
    fn a_refusal_is_returned_only_if_no_earlier_attempt_is_found() {
        let refused = || Fault::refused("declined", "");
        let invalid = || Fault::invalid("amount", "").with_code("too-much");
        let lost = || Fault::unavailable("").with_code("cut");
        for (fault, after, expected) in [
            (refused(), Ok(vec![]), "FaultCategory::Refused declined"),
            (invalid(), Ok(vec![]), "FaultCategory::Invalid too-much"),
            (invalid(), Ok(vec![listed("7", "[R1]", 500)]), "7"),
            (Fault::refused("duplicate", ""), Ok(vec![listed("7", "", 500)]), "7"),
            (Fault::refused("duplicate", ""), Ok(vec![]), "FaultCategory::Unavailable duplicate"),
            (refused(), Ok(vec![listed("7", "", 1)]), "FaultCategory::Refused partly-refunded"),
            (refused(), Err(lost()), "FaultCategory::Unavailable cut"),
            (refused(), Err(Fault::refused("no", "")), "FaultCategory::Unavailable no"),
            (refused(), Err(Fault::misconfigured("")), "FaultCategory::Unavailable "),
            (refused(), Err(Fault::not_found("")), "FaultCategory::Refused declined"),
            (lost(), Ok(vec![listed("7", "[R1]", 500)]), "FaultCategory::Unavailable cut"),
        ] {
            let (outcome, notes) = run(&order(), None, Ok(vec![]), Err(fault), after);
            assert_eq!((outcome.as_str(), notes.len()), (expected, 1));
        }
    }

    #[test]
    fn without_an_answer_to_the_queries_no_refund_is_requested() {
        let unnamed = RefundOrder { transaction_id: String::new(), ..order() };
        for (order, list, expected) in [
            (order(), Err(Fault::refused("no", "")), "FaultCategory::Unavailable no"),
            (order(), Err(Fault::invalid("page", "")), "FaultCategory::Unavailable "),
            (order(), Err(Fault::misconfigured("")), "FaultCategory::Misconfigured "),
            (unnamed, Ok(vec![]), "FaultCategory::Unavailable "),
        ] {
            let (outcome, notes) = run(&order, None, list, Ok(refund("new")), Ok(vec![]));
            assert_eq!((outcome.as_str(), notes.len()), (expected, 0));
        }
    }
}
