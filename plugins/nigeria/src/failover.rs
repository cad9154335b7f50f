//! Failover between upstreams: their order and timeouts. The next upstream is queried only if the
//! previous one is unavailable, because a refusal comes from the register, and would be the same
//! through any upstream.

use prembly::NO_CREDIT;
use tollhouse_plugin::types::{Fault, FaultCategory};
use tollhouse_plugin::{log, settings, vault};

/// A call has 30 s, of which one second is left to the host.
const CALL_TIMEOUT_MS: u32 = 29_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Upstream {
    Prembly,
    Dojah,
}

impl Upstream {
    fn from_name(name: &str) -> Option<Upstream> {
        match name {
            "prembly" => Some(Upstream::Prembly),
            "dojah" => Some(Upstream::Dojah),
            _ => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Upstream::Prembly => "Prembly",
            Upstream::Dojah => "Dojah",
        }
    }

    /// Returns whether the operator configured its credentials.
    fn is_configured(self) -> bool {
        match self {
            Upstream::Prembly => vault::secret(prembly::KEY).is_ok(),
            Upstream::Dojah => {
                vault::secret("dojah_key").is_ok() && settings::required("dojah_app_id").is_ok()
            }
        }
    }
}

/// Returns the response of the first available upstream. The second argument of `query` is its
/// timeout in ms.
pub(crate) fn try_in_order<T>(
    query: impl Fn(Upstream, u32) -> Result<T, Fault>,
) -> Result<T, Fault> {
    let upstreams = configured_order()?;
    let patience_ms = upstream_timeout_ms()?;
    let mut left_ms = CALL_TIMEOUT_MS;
    let mut last = Fault::misconfigured("no upstream has credentials");
    for (at, upstream) in upstreams.iter().enumerate() {
        let is_last = at + 1 == upstreams.len();
        let ms = if is_last { left_ms } else { patience_ms.min(left_ms) };
        match query(*upstream, ms) {
            Err(fault) if is_unavailable(&fault) => {
                log_failure(*upstream, &fault);
                // The duration of other failures is unknown; the host caps the timeout at the
                // remaining time.
                if fault.code == "timeout" {
                    left_ms -= ms;
                }
                last = fault;
            }
            result => return result,
        }
    }
    Err(last)
}

/// Returns the configured upstreams in the order of the setting `order`.
fn configured_order() -> Result<Vec<Upstream>, Fault> {
    let order = settings::required("order")?;
    let mut upstreams = Vec::new();
    for name in order.split(',').map(str::trim).filter(|name| !name.is_empty()) {
        let Some(upstream) = Upstream::from_name(&name.to_lowercase()) else {
            return Err(Fault::misconfigured("the setting order names an unknown upstream")
                .with_detail("setting", "order"));
        };
        if !upstreams.contains(&upstream) && upstream.is_configured() {
            upstreams.push(upstream);
        }
    }
    Ok(upstreams)
}

fn upstream_timeout_ms() -> Result<u32, Fault> {
    let patience = settings::required("patience_ms")?.trim().parse::<u32>();
    patience.ok().filter(|ms| (1..CALL_TIMEOUT_MS).contains(ms)).ok_or_else(|| {
        Fault::misconfigured("the setting patience_ms is not between 1 and 28999")
            .with_detail("setting", "patience_ms")
    })
}

fn is_unavailable(fault: &Fault) -> bool {
    matches!(fault.category, FaultCategory::Unavailable | FaultCategory::Misconfigured)
}

fn log_failure(upstream: Upstream, fault: &Fault) {
    let name = upstream.name();
    if fault.code == NO_CREDIT {
        log::error(&format!("{name} is unavailable: the account has no credit left"));
    } else {
        log::warn(&format!("{name} is unavailable: {} ({})", fault.message, fault.code));
    }
}
