//! The clock, according to the kernel and against the store's.

use std::time::Duration;

use frazil_coord::internal::Leasing;
use frazil_coord::internal::keeper::CLOCK_BOUND_MS;
use frazil_coord::internal::time::{KernelClock, boot_time, kernel_clock, unix_time};
use frazil_coord::{Error, Store};

use crate::check::Check;
use crate::finding::Finding;
use crate::store::failed;

/// A clock that is wrong by more than this puts IDs of different nodes into a wrong order that
/// people notice.
const ERROR_MAX: Duration = Duration::from_millis(100);
/// How often the store's clock is read: the quickest answer tells it best.
const READS: usize = 5;

const DISCIPLINE: &str = "run a time daemon: apt-get install chrony, or timedatectl set-ntp true; \
                          then chronyc tracking or timedatectl timesync-status tells how it is doing";

/// What the kernel says of its clock: the check `clock`.
#[must_use]
pub fn clock() -> Finding {
    judge_clock(kernel_clock())
}

fn judge_clock(clock: Option<KernelClock>) -> Finding {
    const CHECK: &str = "clock";
    let Some(clock) = clock else {
        return Finding::warn(
            CHECK,
            "the kernel does not say whether it is synchronised",
            DISCIPLINE,
        );
    };
    let bounds = format!(
        "wrong by {} at the most, probably by {}",
        ms(clock.maximum_error),
        ms(clock.estimated_error)
    );
    if !clock.is_synchronized {
        let detail = "not synchronised, according to the kernel: nothing bounds its error";
        return Finding::warn(CHECK, detail, DISCIPLINE);
    }
    if clock.maximum_error > ERROR_MAX {
        let fix = "see chronyc sources -v or timedatectl timesync-status: the sources are far \
                   away, or rarely asked (chrony bounds the error more tightly than \
                   systemd-timesyncd)";
        return Finding::warn(CHECK, format!("synchronised, but {bounds}"), fix);
    }
    Finding::ok(CHECK, format!("synchronised, {bounds}"))
}

/// How the clock agrees with the store's: the check `store-clock`.
pub fn store_clock<'a>(store: &'a dyn Store) -> Check<'a> {
    Box::pin(async move {
        const CHECK: &str = "store-clock";
        let row = match compare(store).await {
            Err(error) => failed(CHECK, &error),
            Ok(None) => Finding::skipped(CHECK, "this store has no clock of its own"),
            Ok(Some(Difference { ahead_ms, unsure })) => {
                let side = if ahead_ms < 0 { "behind" } else { "ahead of" };
                let apart = ahead_ms.unsigned_abs();
                let detail = format!("{apart} ms {side} the store's, within {}", ms(unsure));
                let fix =
                    format!("set the clock right here or on the store's machine; {DISCIPLINE}");
                match apart {
                    _ if apart > CLOCK_BOUND_MS => Finding::fail(
                        CHECK,
                        format!("{detail}: beyond {CLOCK_BOUND_MS} ms no worker is leased"),
                        fix,
                    ),
                    _ if u128::from(apart) > ERROR_MAX.as_millis() + unsure.as_millis() => {
                        Finding::warn(CHECK, detail, fix)
                    }
                    _ => Finding::ok(CHECK, detail),
                }
            }
        };
        vec![row]
    })
}

/// How far our clock is ahead of another.
struct Difference {
    ahead_ms: i64,
    /// What the way there and back leaves open.
    unsure: Duration,
}

async fn compare(store: &dyn Store) -> Result<Option<Difference>, Error> {
    let mut best: Option<Difference> = None;
    for _ in 0..READS {
        let (asked, began) = (unix_time(), boot_time());
        let Some(theirs) = store.time().await? else { return Ok(None) };
        let trip = boot_time().saturating_sub(began);
        let ours = u64::try_from((asked + trip / 2).as_millis()).unwrap_or(u64::MAX);
        let ahead_ms = ours.cast_signed().saturating_sub(theirs.cast_signed());
        let unsure = trip / 2;
        if best.as_ref().is_none_or(|best| unsure < best.unsure) {
            best = Some(Difference { ahead_ms, unsure });
        }
    }
    Ok(best)
}

/// A duration in milliseconds with as many digits as people read.
pub(crate) fn ms(duration: Duration) -> String {
    let ms = duration.as_secs_f64() * 1000.0;
    match ms {
        _ if ms >= 10.0 => format!("{ms:.0} ms"),
        _ => format!("{ms:.1} ms"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Status;

    #[test]
    fn a_clock_that_nobody_keeps_or_that_may_be_far_off_is_warned_of() {
        let good = KernelClock {
            is_synchronized: true,
            offset_ns: 0,
            estimated_error: Duration::from_micros(200),
            maximum_error: Duration::from_millis(20),
        };
        let loose = KernelClock { maximum_error: Duration::from_millis(101), ..good };
        let free = KernelClock { is_synchronized: false, ..good };
        for (clock, status) in [
            (Some(good), Status::Ok),
            (Some(loose), Status::Warn),
            (Some(free), Status::Warn),
            (None, Status::Warn),
        ] {
            assert_eq!(judge_clock(clock).status, status, "{clock:?}");
        }
    }
}
