//! The servers' clock. They tell it with what is written; in between this machine's boot time goes
//! on from there.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use zookeeper_client::Stat;

use crate::record::UnixMs;
use crate::time::{boot_time, millis};

/// The time that was told last, with the boot time at which the answer came.
#[derive(Debug, Default)]
pub(super) struct Clock(Mutex<Option<(UnixMs, Duration)>>);

impl Clock {
    /// Sets it by the time of a write that was answered just now, and gives that time.
    pub(super) fn set(&self, written: &Stat) -> Option<UnixMs> {
        let told = u64::try_from(written.mtime).ok()?;
        *self.lock() = Some((told, boot_time()));
        Some(told)
    }

    /// What it shows now; `None` if nothing was written yet.
    pub(super) fn now(&self) -> Option<UnixMs> {
        let (told, answered) = (*self.lock())?;
        Some(told.saturating_add(millis(boot_time().saturating_sub(answered))))
    }

    fn lock(&self) -> MutexGuard<'_, Option<(UnixMs, Duration)>> {
        // Every change is complete before anything can panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
