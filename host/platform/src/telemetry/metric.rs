//! Metric types that the modules of the host share.

use std::{fmt, sync::atomic::AtomicU64};

use prometheus_client::{
    encoding::{EncodeLabelSet, EncodeMetric, MetricEncoder},
    metrics::MetricType,
    registry::Metric,
};
pub use prometheus_client::{
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::{Registry, Unit},
};

pub type Histograms<L> = Family<L, Histogram, fn() -> Histogram>;

pub type FloatGauge = Gauge<f64, AtomicU64>;

/// A single label as name and value, where a struct would add nothing.
pub type Label<V> = [(&'static str, V); 1];

/// Creates a histogram of waits for clients or networks, in seconds: 1 ms to 30 s.
pub fn wait_time_histogram() -> Histogram {
    Histogram::new([
        0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0,
    ])
}

/// Creates a histogram of local work, in seconds: 50 us to 10 s.
pub fn work_time_histogram() -> Histogram {
    Histogram::new([
        0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25,
        1.0, 10.0,
    ])
}

struct Computed<F>(F);

impl<F: Fn(MetricEncoder<'_>) -> fmt::Result> EncodeMetric for Computed<F> {
    fn encode(&self, encoder: MetricEncoder<'_>) -> fmt::Result {
        (self.0)(encoder)
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Gauge
    }
}

impl<F> fmt::Debug for Computed<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Computed")
    }
}

/// Creates a gauge that is computed at each scrape.
pub fn computed_gauge(value: impl Fn() -> f64 + Send + Sync + 'static) -> impl Metric {
    Computed(move |mut encoder: MetricEncoder<'_>| encoder.encode_gauge(&value()))
}

/// Creates labelled gauges that are computed at each scrape.
pub fn computed_gauges<L: EncodeLabelSet + 'static>(
    values: impl Fn() -> Vec<(L, f64)> + Send + Sync + 'static,
) -> impl Metric {
    Computed(move |mut encoder: MetricEncoder<'_>| {
        let mut values = values().into_iter();
        values.try_for_each(|(labels, value)| encoder.encode_family(&labels)?.encode_gauge(&value))
    })
}
