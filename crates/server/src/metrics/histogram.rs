//! A histogram without a lock: it is told of every request, by every thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use prometheus_client::encoding::{EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::{MetricType, TypedMetric};

/// Counts numbers by the first bound that they do not exceed. Clones are the same histogram.
#[derive(Clone, Debug)]
pub(crate) struct Histogram(Arc<Counts>);

#[derive(Debug)]
struct Counts {
    /// Ascending, in the small unit that is counted in.
    bounds: Vec<u64>,
    /// One for each bound, and one for what exceeds them all.
    buckets: Vec<AtomicU64>,
    sum: AtomicU64,
    /// What the small unit is worth in the unit that is shown.
    worth: f64,
}

impl Histogram {
    /// Of durations, with bounds in seconds.
    pub(super) fn of_seconds(bounds: &[f64]) -> Self {
        Self::new(bounds, 1e-9)
    }

    /// Of numbers.
    pub(super) fn of_numbers(bounds: &[f64]) -> Self {
        Self::new(bounds, 1.0)
    }

    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small constants")]
    fn new(bounds: &[f64], worth: f64) -> Self {
        let bounds: Vec<u64> = bounds.iter().map(|bound| (bound / worth).round() as u64).collect();
        let buckets = (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect();
        Self(Arc::new(Counts { bounds, buckets, sum: AtomicU64::new(0), worth }))
    }

    pub(crate) fn duration(&self, duration: Duration) {
        self.number(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX));
    }

    pub(crate) fn number(&self, number: u64) {
        self.number_times(number, 1);
    }

    /// The same number several times.
    pub(crate) fn number_times(&self, number: u64, times: u64) {
        let Counts { bounds, buckets, sum, .. } = &*self.0;
        let place = bounds.iter().position(|bound| number <= *bound).unwrap_or(bounds.len());
        // Relaxed: statistics; a reader may see one without the other.
        buckets[place].fetch_add(times, Ordering::Relaxed);
        sum.fetch_add(number.saturating_mul(times), Ordering::Relaxed);
    }
}

impl TypedMetric for Histogram {
    const TYPE: MetricType = MetricType::Histogram;
}

impl EncodeMetric for Histogram {
    #[expect(clippy::cast_precision_loss, reason = "shown, not counted with")]
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> Result<(), std::fmt::Error> {
        let Counts { bounds, buckets, sum, worth } = &*self.0;
        let bounds = bounds.iter().map(|bound| *bound as f64 * worth).chain([f64::INFINITY]);
        let counts = buckets.iter().map(|bucket| bucket.load(Ordering::Relaxed));
        let buckets: Vec<(f64, u64)> = bounds.zip(counts).collect();
        let count = buckets.iter().map(|(_, count)| count).sum();
        let sum = sum.load(Ordering::Relaxed) as f64 * worth;
        encoder.encode_histogram::<NoLabelSet>(sum, count, &buckets, None)
    }

    fn metric_type(&self) -> MetricType {
        Self::TYPE
    }
}
