//! What it costs to ask whether one leads, beside what it costs to ask for the time.

use std::error::Error;
use std::hint::black_box;
use std::sync::Arc;

use frazil::coord::MemoryStore;
use frazil::coord::internal::time::boot_time;
use frazil::election::{Elections, Settings};

/// Enough for what surrounds them not to count.
const CALLS: u32 = 5_000_000;

/// Nanoseconds a call.
pub(crate) struct CallCost {
    pub(crate) is_leader_ns: f64,
    pub(crate) clock_ns: f64,
}

impl CallCost {
    pub(crate) async fn measure() -> Result<Self, Box<dyn Error>> {
        let elections = Elections::new(Arc::new(MemoryStore::new()));
        let candidate = elections.candidate("asked", Settings::default())?;
        let leadership = candidate.campaign().await?;
        let clock_ns = each(boot_time);
        let is_leader_ns = each(|| leadership.is_leader());
        leadership.resign().await?;
        Ok(Self { is_leader_ns, clock_ns })
    }
}

fn each<T>(call: impl Fn() -> T) -> f64 {
    let begun = boot_time();
    for _ in 0..CALLS {
        black_box(call());
    }
    (boot_time() - begun).as_secs_f64() * 1e9 / f64::from(CALLS)
}
