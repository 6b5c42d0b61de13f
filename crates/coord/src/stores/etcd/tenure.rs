//! Holding on to a slot, and letting it go.

use etcd_client::{Compare, CompareOp, Txn, TxnOp};

use super::acquire::leased;
use super::failure::Failure;
use super::remote::{Call, Nature};
use super::sight::{Sight, revision, written};
use super::{EtcdStore, json};
use crate::error::{Error, ErrorKind};
use crate::lease::{Ask, Extended, Loss, Released, Tenure};
use crate::record::{UnixMs, Version};
use crate::rules;

/// How often a write is repeated because the record changed in between. Only repetitions of the
/// holder's own requests change it under its nonce.
const ROUNDS_MAX: usize = 8;

impl EtcdStore {
    pub(super) async fn hold_on(
        &self,
        call: &Call<'_>,
        tenure: &Tenure,
        ask: &Ask,
    ) -> Result<Extended, Error> {
        for _ in 0..ROUNDS_MAX {
            let sight = match Sight::of_slot(call, &self.keys, &tenure.slot).await {
                Ok(sight) => sight,
                Err(Failure::Regressed) => return Ok(Extended::Lost(Loss::Regressed)),
                Err(failure) => return Err(call.error(Nature::Reads, &failure)),
            };
            let seen = sight.cell(&tenure.slot);
            let (Some(record), Some(_)) = (&seen.record, sight.meta_version()) else {
                return Ok(Extended::Lost(Loss::Vanished));
            };
            if Self::is_older(seen.version, tenure) {
                return Ok(Extended::Lost(Loss::Regressed));
            }
            let record = match rules::extend(record, tenure, ask) {
                Ok(record) => record,
                Err(loss) => return Ok(Extended::Lost(loss)),
            };
            let lease = self.lease(call, ask.ttl).await?;
            let key = self.keys.record(&tenure.slot);
            let own = self.keys.own(&tenure.slot);
            let mut write = vec![
                TxnOp::put(key.clone(), json(&record), None),
                TxnOp::put(own, tenure.nonce.to_string(), leased(lease)),
            ];
            if !seen.is_held {
                // Those who watch saw the presence lapse, and now see it come back.
                let born = self.keys.born(&tenure.slot);
                write.push(TxnOp::put(born, record.token.to_string(), None));
            }
            let swap = Txn::new()
                .when([
                    Compare::mod_revision(key, CompareOp::Equal, revision(seen.version)),
                    Compare::create_revision(self.keys.meta(), CompareOp::Greater, 0),
                ])
                .and_then(write);
            match call.transact(Nature::Writes, swap).await {
                Ok(answer) if answer.succeeded() => {
                    let (version, horizon) = (written(&answer), record.horizon);
                    return Ok(Extended::Held(Tenure { version, horizon, ..tenure.clone() }));
                }
                Ok(_) => {}
                Err(Failure::NoLease) => self.leases.forget(call, lease).await,
                Err(Failure::Regressed) => return Ok(Extended::Lost(Loss::Regressed)),
                Err(failure) => return Err(call.error(Nature::Writes, &failure)),
            }
        }
        Err(restless(call))
    }

    pub(super) async fn let_go(
        &self,
        call: &Call<'_>,
        tenure: &Tenure,
        last: UnixMs,
    ) -> Result<Released, Error> {
        for _ in 0..ROUNDS_MAX {
            let sight = self.look(call, Sight::of_slot(call, &self.keys, &tenure.slot)).await?;
            let seen = sight.cell(&tenure.slot);
            let Some(record) = &seen.record else { return Ok(Released::NotHeld) };
            if Self::is_older(seen.version, tenure) {
                // This record's horizon is one of the past: it must not be made the next floor.
                return Err(call.error(Nature::Reads, &Failure::Regressed));
            }
            let Ok(record) = rules::release(record, tenure, last) else {
                return Ok(Released::NotHeld);
            };
            let key = self.keys.record(&tenure.slot);
            let swap = Txn::new()
                .when([Compare::mod_revision(&*key, CompareOp::Equal, revision(seen.version))])
                .and_then([
                    TxnOp::put(key, json(&record), None),
                    TxnOp::delete(self.keys.own(&tenure.slot), None),
                ]);
            match call.transact(Nature::Writes, swap).await {
                Ok(answer) if answer.succeeded() => return Ok(Released::Done),
                Ok(_) => {}
                Err(failure) => return Err(call.error(Nature::Writes, &failure)),
            }
        }
        Err(restless(call))
    }

    /// Whether the store holds an older record than the one that it has acknowledged. Within one
    /// history that cannot be.
    fn is_older(seen: Version, tenure: &Tenure) -> bool {
        seen < tenure.version
    }
}

fn restless(call: &Call<'_>) -> Error {
    let why = format_args!("the record changed {ROUNDS_MAX} times in a row");
    call.problem(ErrorKind::Unavailable, why)
}
