//! Metric types that the modules of the host share.

use std::{fmt, sync::atomic::AtomicU64};

use prometheus_client::{
    encoding::{EncodeLabelSet, EncodeMetric, MetricEncoder},
    metrics::{MetricType, family::Family, gauge::Gauge, histogram::Histogram},
};

/// Histograms by label set.
pub type Histograms<L> = Family<L, Histogram, fn() -> Histogram>;

/// A floating-point gauge.
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

/// A gauge that is computed at each scrape.
pub struct ComputedGauge<F>(pub F);

impl<F: Fn() -> f64> EncodeMetric for ComputedGauge<F> {
    fn encode(&self, mut encoder: MetricEncoder) -> fmt::Result {
        encoder.encode_gauge(&(self.0)())
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Gauge
    }
}

impl<F> fmt::Debug for ComputedGauge<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Now")
    }
}

/// Labelled gauges that are computed at each scrape.
pub struct ComputedGauges<F>(pub F);

impl<L: EncodeLabelSet, F: Fn() -> Vec<(L, f64)>> EncodeMetric for ComputedGauges<F> {
    fn encode(&self, mut encoder: MetricEncoder) -> fmt::Result {
        for (labels, value) in (self.0)() {
            encoder.encode_family(&labels)?.encode_gauge(&value)?;
        }
        Ok(())
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Gauge
    }
}

impl<F> fmt::Debug for ComputedGauges<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Each")
    }
}
