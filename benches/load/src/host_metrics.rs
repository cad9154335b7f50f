//! Metrics that the hosts report about themselves.

use std::ops::{Add, Sub};

/// Senders of outgoing requests that are not plugins.
const OWN_SENDERS: [&str; 2] = ["events", "images"];
const INITIALIZE: &str = "/api/v1/payment/initialize";

/// Sums since the start of the hosts, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct HostMetrics {
    pub cpu_s: f64,
    /// Requests to initialize payments, as the host measures them.
    pub initialize_s: f64,
    pub initialized: f64,
    /// Requests of plugins to their upstreams, with the whole response.
    pub upstream_s: f64,
    pub upstream_requests: f64,
}

impl HostMetrics {
    /// Parses a page in the text format of OpenMetrics.
    pub fn parse(page: &str) -> HostMetrics {
        let mut metrics = HostMetrics::default();
        for line in page.lines() {
            let Some((name, value)) = line.rsplit_once(' ') else { continue };
            let (name, labels) = name.split_once('{').unwrap_or((name, ""));
            let has = |label: &str, value: &str| labels.contains(&format!("{label}=\"{value}\""));
            let sum = match name {
                "process_cpu_seconds_total" => &mut metrics.cpu_s,
                "tollhouse_http_request_duration_seconds_sum" if has("route", INITIALIZE) => {
                    &mut metrics.initialize_s
                }
                "tollhouse_http_request_duration_seconds_count" if has("route", INITIALIZE) => {
                    &mut metrics.initialized
                }
                _ if OWN_SENDERS.iter().any(|own| has("sender", own)) => continue,
                "tollhouse_egress_request_duration_seconds_sum" => &mut metrics.upstream_s,
                "tollhouse_egress_request_duration_seconds_count" => &mut metrics.upstream_requests,
                _ => continue,
            };
            *sum += value.parse().unwrap_or(0.0);
        }
        metrics
    }

    fn zip(self, other: HostMetrics, combine: fn(f64, f64) -> f64) -> HostMetrics {
        HostMetrics {
            cpu_s: combine(self.cpu_s, other.cpu_s),
            initialize_s: combine(self.initialize_s, other.initialize_s),
            initialized: combine(self.initialized, other.initialized),
            upstream_s: combine(self.upstream_s, other.upstream_s),
            upstream_requests: combine(self.upstream_requests, other.upstream_requests),
        }
    }
}

impl Add for HostMetrics {
    type Output = HostMetrics;

    fn add(self, other: HostMetrics) -> HostMetrics {
        self.zip(other, |one, two| one + two)
    }
}

impl Sub for HostMetrics {
    type Output = HostMetrics;

    fn sub(self, other: HostMetrics) -> HostMetrics {
        self.zip(other, |one, two| one - two)
    }
}

/// Returns the CPU seconds of this process; `None` where there is no `/proc`.
pub fn own_cpu_s() -> Option<f64> {
    /// `USER_HZ`, the same on every supported architecture.
    const TICKS_PER_SECOND: f64 = 100.0;
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The name of the process, in parentheses, may contain spaces.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<f64>().ok();
    Some((ticks()? + ticks()?) / TICKS_PER_SECOND)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = r#"# TYPE process_cpu_seconds counter
# UNIT process_cpu_seconds seconds
process_cpu_seconds_total 12.5
tollhouse_http_request_duration_seconds_sum{listener="public",method="POST",route="/api/v1/payment/initialize"} 3.5
tollhouse_http_request_duration_seconds_count{listener="public",method="POST",route="/api/v1/payment/initialize"} 700
tollhouse_http_request_duration_seconds_bucket{le="0.001",listener="public",method="POST",route="/api/v1/payment/initialize"} 5
tollhouse_http_request_duration_seconds_sum{listener="public",method="GET",route="/api/v1/payment/list"} 9
tollhouse_egress_request_duration_seconds_sum{sender="provider_a"} 1.5
tollhouse_egress_request_duration_seconds_count{sender="provider_a"} 800
tollhouse_egress_request_duration_seconds_sum{sender="nigeria"} 0.5
tollhouse_egress_request_duration_seconds_count{sender="nigeria"} 100
tollhouse_egress_request_duration_seconds_sum{sender="events"} 77
tollhouse_egress_request_duration_seconds_count{sender="events"} 77
# EOF
"#;

    #[test]
    fn metrics_of_hosts_are_parsed_and_added() {
        let one = HostMetrics::parse(PAGE);
        let expected = HostMetrics {
            cpu_s: 12.5,
            initialize_s: 3.5,
            initialized: 700.0,
            upstream_s: 2.0,
            upstream_requests: 900.0,
        };
        assert_eq!(one, expected);
        assert_eq!(one + one - one, one);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn own_cpu_time_is_read_and_grows() {
        let before = own_cpu_s().unwrap();
        let mut spent = before;
        while spent == before {
            spent = own_cpu_s().unwrap();
        }
        assert!(spent > before);
    }
}
