//! Refunds at a provider that accepts no reference for a refund. Each request has a note. After a
//! lost response, the note identifies the refund in the provider's list.

use crate::refunds::{Refund, RefundOrder};
use crate::repeat;
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

    /// Returns whether a refusal of [`request`](Self::request) reports an earlier refund. If the
    /// list does not have that refund yet, the outcome is `unavailable`. The default is for lists
    /// that are always up to date.
    fn is_duplicate(_refusal: &Fault) -> bool {
        false
    }
}

/// Starts a refund, or returns an earlier attempt. Looks for one before the request, and again
/// after a refusal. `earlier` has the ids of the payment's other refunds if this is a refund of a
/// part.
///
/// A listed refund is an earlier attempt if it has this refund's note or its amount, even if it was
/// made outside the host. If the list has a refund of another amount, a refund of the whole payment
/// is `refused` with the code `partly-refunded`. A refused query is `unavailable`, because an
/// earlier attempt may exist.
pub fn start<P: NotedRefunds>(
    order: &RefundOrder,
    earlier: Option<&[String]>,
) -> Result<Refund, Fault> {
    let transaction = find_transaction::<P>(order)?;
    let find = || match repeat::queried(P::list(&transaction, order)) {
        Err(fault) if fault.category == FaultCategory::NotFound => Ok(None),
        listed => find_attempt(&listed?, order, earlier),
    };
    if let Some(made) = find()? {
        return Ok(made);
    }
    let note = format!("{} {}", order.reason, identifier(order)).trim().to_owned();
    repeat::refunded(P::request(&transaction, order, &note), P::is_duplicate, find)
}

fn find_transaction<P: NotedRefunds>(order: &RefundOrder) -> Result<String, Fault> {
    if !order.transaction_id.is_empty() {
        return Ok(order.transaction_id.clone());
    }
    let found = repeat::queried(P::find_transaction(&order.service_ref))?;
    if found.is_empty() { Err(unreadable("the transaction's id")) } else { Ok(found) }
}

fn unreadable(what: &str) -> Fault {
    Fault::unavailable(format!("{what} cannot be read")).with_code("unexpected-answer")
}

fn identifier(order: &RefundOrder) -> String {
    format!("[{}]", order.refund_ref)
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
        let amount = item.amount.ok_or_else(|| unreadable("the amount of a refund"))?;
        if amount == order.amount.minor {
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

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::mem::take;

    use super::*;
    use crate::refunds::RefundStatus;
    use crate::types::Money;

    type Listed = Result<Vec<ListedRefund>, Fault>;

    /// The id of the transaction, the lists before and after the request, and the response to it.
    struct Provider {
        transaction: Result<String, Fault>,
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
            with_provider(|provider| provider.transaction.clone())
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

    /// Starts a refund. Returns the id of the refund, or the category and the code of the fault,
    /// and the notes of the requests.
    fn run(
        order: &RefundOrder,
        earlier: Option<&[String]>,
        before: Listed,
        response: Result<Refund, Fault>,
        after: Listed,
    ) -> (String, Vec<String>) {
        let (transaction, notes) = (Ok("1".to_owned()), Vec::new());
        PROVIDER.set(Some(Provider { transaction, before, response, after, notes }));
        let outcome = outcome_of(start::<Fake>(order, earlier));
        (outcome, with_provider(|provider| take(&mut provider.notes)))
    }

    fn outcome_of(result: Result<Refund, Fault>) -> String {
        match result {
            Ok(made) => made.provider_id,
            Err(fault) => format!("{:?} {}", fault.category, fault.code),
        }
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
        let (part, listed) = (["7".to_owned()], vec![listed("7", "", 500), listed("8", "", 500)]);
        let (outcome, _) = run(&order(), Some(&part), Ok(vec![]), Err(refused()), Ok(listed));
        assert_eq!(outcome, "8");
    }

    #[test]
    fn without_an_answer_to_the_queries_no_refund_is_requested() {
        for (list, expected) in [
            (Err(Fault::refused("no", "")), "FaultCategory::Unavailable no"),
            (Err(Fault::invalid("page", "")), "FaultCategory::Unavailable "),
            (Err(Fault::misconfigured("")), "FaultCategory::Misconfigured "),
        ] {
            let (outcome, notes) = run(&order(), None, list, Ok(refund("new")), Ok(vec![]));
            assert_eq!((outcome.as_str(), notes.len()), (expected, 0));
        }
        let unnamed = RefundOrder { transaction_id: String::new(), ..order() };
        for (transaction, expected) in [
            (Ok("1".to_owned()), "new"),
            (Ok(String::new()), UNREADABLE),
            (Err(Fault::refused("no", "")), "FaultCategory::Unavailable no"),
            (Err(Fault::not_found("")), "FaultCategory::NotFound "),
        ] {
            let (before, response, after) = (Ok(vec![]), Ok(refund("new")), Ok(vec![]));
            let notes = Vec::new();
            PROVIDER.set(Some(Provider { transaction, before, response, after, notes }));
            assert_eq!(outcome_of(start::<Fake>(&unnamed, None)), expected);
        }
    }
}
