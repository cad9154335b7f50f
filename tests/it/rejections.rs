//! Causes of a rejected payment, in the host's words.

use serde_json::json;

use crate::unruly::{initialize_with_narration, install_unruly};

both! {
    async fn the_cause_of_a_rejection_is_worded_by_the_host(app: TestApp) {
        install_unruly(app).await;
        for (n, (narration, status, message)) in [
            ("invalid amount-step 100", 400, "the amount field must be a multiple of 1 NGN"),
            ("invalid below-minimum 250050", 400, "the amount field must be at least 2500.5 NGN"),
            ("invalid above-maximum 0", 400, "the amount is above the maximum of unruly"),
            ("refused above-maximum 1000", 400, "the amount field must be at most 10 NGN"),
            ("refused unsupported-number", 400, "unruly does not serve this phone number"),
            ("refused payer-limit", 400, "the payer has reached a limit at unruly"),
            ("refused payer-busy", 503, "the payer has not answered another payment request yet"),
            ("invalid a-cause-of-later", 400, "the amount field must be one that unruly accepts"),
            ("refused a-cause-of-later", 502, "unruly is unavailable, please try again later"),
        ]
        .into_iter()
        .enumerate()
        {
            let reference = format!("order-{n}");
            let narration = format!("reject {narration}");
            let rejected = initialize_with_narration(app, &reference, &narration).await;
            assert_eq!(rejected.failure(), (status, message), "{narration}");
            assert!(!rejected.body.to_string().contains("operators"));
            let found = app.get(&format!("/payment/fetch/reference/{reference}")).await;
            // An invalid payment is not kept; a refused one can be resumed.
            let kept = narration.contains("refused");
            assert_eq!(found.status == 200, kept, "{narration}: {}", json!(found.body));
        }
    }
}
