//! The scaling of lanes: more while the sequences are used up, fewer when they idle.

use std::sync::atomic::Ordering;
use std::time::Duration;

use frazil::coord::LeaseState;
use tokio_util::sync::CancellationToken;

use crate::app::Shared;

/// How often the load is looked at.
const LOOK: Duration = Duration::from_millis(250);
/// Looks with waiting requests in a row before a lane is added: a burst is not a load.
const BUSY_LOOKS: u32 = 3;
/// Looks in a row at which fewer lanes would have done before one is dropped: half a minute, so
/// that a worker is not leased and released with every wave.
const IDLE_LOOKS: u32 = 120;
/// Lanes are busy when they are used to more than seven tenths, and fewer would do when those
/// would be used to no more.
const USED_TENTHS: u64 = 7;
/// Lanes that a node takes by itself: what a few cores can use, and a small part of the pool.
const LANES_MAX: usize = 8;

/// What to do about the number of lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ScalingStep {
    Stay,
    Add,
    Drop,
}

/// What was seen between two looks.
#[derive(Clone, Copy, Debug)]
struct Load {
    lanes: usize,
    /// Whether all of them have a worker.
    are_held: bool,
    /// Requests that met used-up sequences.
    exhausted: u64,
    /// IDs issued.
    issued: u64,
    /// IDs that one lane can issue in that time.
    lane_could: u64,
}

/// Decides from one look to the next. Pure.
#[derive(Debug, Default)]
struct Scaler {
    busy: u32,
    idle: u32,
}

impl Scaler {
    fn look(&mut self, load: Load) -> ScalingStep {
        let lanes = load.lanes as u64;
        // More lanes than these were used to most of what they could do.
        let uses_more_than = |lanes: u64| {
            load.issued.saturating_mul(10) > load.lane_could.saturating_mul(lanes) * USED_TENTHS
        };
        let is_busy = load.exhausted > 0 && uses_more_than(lanes);
        self.busy = if is_busy { self.busy + 1 } else { 0 };
        self.idle = if uses_more_than(lanes.saturating_sub(1)) { 0 } else { self.idle + 1 };
        if self.busy >= BUSY_LOOKS && load.lanes < LANES_MAX && load.are_held {
            *self = Self::default();
            ScalingStep::Add
        } else if self.idle >= IDLE_LOOKS && load.lanes > 1 {
            *self = Self::default();
            ScalingStep::Drop
        } else {
            ScalingStep::Stay
        }
    }
}

/// Follows the load of a node until the server goes.
pub(crate) async fn run(shared: &Shared, shutdown: CancellationToken) {
    let mut scaler = Scaler::default();
    let mut ticker = tokio::time::interval(LOOK);
    ticker.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let (mut exhausted, mut issued) = (0, 0);
    loop {
        tokio::select! {
            () = shutdown.cancelled() => return,
            _ = ticker.tick() => {}
        }
        let Some(node) = shared.issuer.node() else { continue };
        // Relaxed: statistics.
        let exhausted_now = shared.issuer.wait_stats.exhausted.load(Ordering::Relaxed);
        let issued_now = shared.metrics.requests.issued_in_all();
        let looks = u64::try_from(Duration::from_secs(1).as_millis() / LOOK.as_millis());
        let load = Load {
            lanes: node.lanes(),
            are_held: node.watch().borrow().iter().all(|lane| lane.state == LeaseState::Held),
            exhausted: exhausted_now - exhausted,
            issued: issued_now - issued,
            lane_could: shared.issuer.layout().ids_per_second() / looks.unwrap_or(1).max(1),
        };
        (exhausted, issued) = (exhausted_now, issued_now);
        match scaler.look(load) {
            ScalingStep::Stay => {}
            ScalingStep::Add => match node.add_lane() {
                Ok(true) => {
                    tracing::info!(lanes = node.lanes(), "a lane was added: sequences are used up");
                }
                Ok(false) => {}
                Err(refusal) => {
                    tracing::warn!(refusal = %format_args!("{refusal:#}"), "cannot add a lane, though sequences are used up")
                }
            },
            ScalingStep::Drop => {
                if node.drop_lane().await {
                    tracing::info!(lanes = node.lanes(), "a lane was given back: it was idle");
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUSY: Load =
        Load { lanes: 1, are_held: true, exhausted: 5, issued: 1000, lane_could: 1000 };

    fn steps(load: Load, looks: u32) -> Vec<ScalingStep> {
        let mut scaler = Scaler::default();
        (0..looks)
            .map(|_| scaler.look(load))
            .filter(|advice| *advice != ScalingStep::Stay)
            .collect()
    }

    #[test]
    fn a_load_adds_lanes_and_a_burst_does_not() {
        assert_eq!(steps(BUSY, BUSY_LOOKS - 1), []);
        assert_eq!(steps(BUSY, BUSY_LOOKS * 2), [ScalingStep::Add, ScalingStep::Add]);
        let mut scaler = Scaler::default();
        for _ in 0..100 {
            assert_eq!(scaler.look(BUSY), ScalingStep::Stay);
            assert_eq!(scaler.look(BUSY), ScalingStep::Stay);
            assert_eq!(scaler.look(Load { exhausted: 0, ..BUSY }), ScalingStep::Stay);
        }
    }

    #[test]
    fn no_lane_is_added_while_one_still_seeks_or_all_are_there() {
        assert_eq!(steps(Load { are_held: false, ..BUSY }, 100), []);
        assert_eq!(steps(Load { lanes: LANES_MAX, issued: 8000, ..BUSY }, 100), []);
    }

    #[test]
    fn idle_lanes_are_given_back_but_never_the_last() {
        let idle = Load { lanes: 2, exhausted: 0, issued: 100, ..BUSY };
        assert_eq!(steps(idle, IDLE_LOOKS - 1), []);
        assert_eq!(steps(idle, IDLE_LOOKS), [ScalingStep::Drop]);
        assert_eq!(steps(Load { issued: 701, ..idle }, IDLE_LOOKS * 2), []);
        assert_eq!(steps(Load { lanes: 1, issued: 0, ..idle }, IDLE_LOOKS * 2), []);
        // A few large batches that fill over several ticks are no load.
        let large = Load { lanes: 1, exhausted: 5, issued: 60, ..BUSY };
        assert_eq!(steps(large, IDLE_LOOKS), []);
    }
}
