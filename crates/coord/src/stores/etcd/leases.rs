//! The leases that presence hangs on: one for each time to live.

use std::collections::HashMap;
use std::time::Duration;

use tokio::sync::Mutex;

use super::failure::Failure;
use super::remote::{Call, RequestEffect};
use crate::time::boot_time;

/// The leases of one store object, by their time to live in seconds.
#[derive(Default)]
pub(super) struct Leases {
    granted: Mutex<HashMap<i64, Lease>>,
}

#[derive(Clone, Copy)]
struct Lease {
    id: i64,
    /// When the request that renewed it last was sent, in boot time.
    renewed: Duration,
}

impl Leases {
    /// A lease that has its whole time to live before it, counted from the start of the call.
    ///
    /// A lease that another call renewed since then will do: many calls at once renew it once.
    pub(super) async fn fresh(&self, call: &Call<'_>, ttl: Duration) -> Result<i64, Failure> {
        let seconds = whole_seconds(ttl);
        let waiting = tokio::time::timeout(call.remaining(), self.granted.lock());
        let Ok(mut granted) = waiting.await else {
            return Err(Failure::Undone("other requests for the lease take all the time".into()));
        };
        if let Some(lease) = granted.get_mut(&seconds) {
            if lease.renewed >= call.started {
                return Ok(lease.id);
            }
            let sent = boot_time();
            match keep_alive(call, lease.id).await {
                Ok(()) => {
                    lease.renewed = sent;
                    return Ok(lease.id);
                }
                Err(Failure::NoLease) => {}
                Err(failure) => return Err(failure),
            }
        }
        let renewed = boot_time();
        let id = grant(call, seconds).await?;
        granted.insert(seconds, Lease { id, renewed });
        Ok(id)
    }

    /// Forgets a lease that turned out not to exist any more.
    pub(super) async fn forget(&self, call: &Call<'_>, id: i64) {
        // If the time runs out here it runs out for the call, and the next one finds it dead.
        if let Ok(mut granted) = tokio::time::timeout(call.remaining(), self.granted.lock()).await {
            granted.retain(|_, lease| lease.id != id);
        }
    }
}

/// etcd counts leases in seconds; it raises those that are too short for its elections.
fn whole_seconds(ttl: Duration) -> i64 {
    let seconds = ttl.as_secs() + u64::from(ttl.subsec_nanos() > 0);
    i64::try_from(seconds.max(1)).unwrap_or(i64::MAX)
}

/// Granting twice does no harm: what nobody uses ends by itself.
async fn grant(call: &Call<'_>, seconds: i64) -> Result<i64, Failure> {
    call.request(
        RequestEffect::Reads,
        |member| async move { member.client.grant_lease(seconds).await },
    )
    .await
}

async fn keep_alive(call: &Call<'_>, id: i64) -> Result<(), Failure> {
    call.request(
        RequestEffect::Reads,
        |member| async move { member.client.keep_lease_alive(id).await },
    )
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_to_live_is_never_cut_short() {
        for (ttl, seconds) in [(0, 1), (1, 1), (1000, 1), (1001, 2), (30_000, 30)] {
            assert_eq!(whole_seconds(Duration::from_millis(ttl)), seconds, "{ttl} ms");
        }
    }
}
