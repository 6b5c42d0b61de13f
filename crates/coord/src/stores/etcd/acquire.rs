//! Taking a slot.

use etcd_client::{Compare, CompareOp, PutOptions, Txn, TxnOp, TxnOpResponse, TxnResponse};

use super::failure::Failure;
use super::remote::{Call, Nature};
use super::sight::{Cell, Sight, revision, written};
use super::{EtcdStore, json};
use crate::choose::{Candidate, candidates};
use crate::error::{Error, ErrorKind};
use crate::lease::{Acquired, Census, Choice, Claim};
use crate::record::{Record, Version};
use crate::rules;
use crate::slot::{Group, Slot};
use crate::store::Found;

/// How many slots one transaction tries. If all of a crowd see the same free slots, a claim
/// fails on all of these with a chance of 1 in 9 on average; more would make every request larger.
const CANDIDATES_MAX: usize = 8;
/// How often a claim that others were faster than looks again. In a crowd twice is rare.
const ROUNDS_MAX: usize = 16;

/// A slot with what is about to be written to it.
struct Attempt {
    slot: Slot,
    seen: Cell,
    record: Record,
}

impl EtcdStore {
    pub(super) async fn take(&self, call: &Call<'_>, claim: &Claim) -> Result<Acquired, Error> {
        match &claim.choice {
            Choice::This(slot, read) => self.take_this(call, claim, slot, *read).await,
            Choice::Any { first, last, favourite } => {
                let wanted = Wanted { first: *first, last: *last, favourite: *favourite };
                self.take_any(call, claim, wanted).await
            }
        }
    }

    async fn take_this(
        &self,
        call: &Call<'_>,
        claim: &Claim,
        slot: &Slot,
        read: Version,
    ) -> Result<Acquired, Error> {
        for _ in 0..ROUNDS_MAX {
            let sight = self.look(call, Sight::of_slot(call, &self.keys, slot)).await?;
            // Before anything else: what is held already stays held, whatever meta says now.
            if let Some(held) = held(&sight, claim) {
                return Ok(held);
            }
            if sight.meta_version() != Some(claim.meta) {
                return Ok(Acquired::MetaMoved);
            }
            let seen = sight.cell(slot);
            if seen.version != read || seen.is_held {
                return Ok(Acquired::Taken);
            }
            let record = match rules::acquire(&seen.found(), claim) {
                Ok(record) => record,
                Err(outlook) => return Ok(Acquired::Full(Census::of(outlook))),
            };
            let attempt = Attempt { slot: slot.clone(), seen, record };
            let lease = self.lease(call, claim.ttl).await?;
            let write = Txn::new()
                .when([self.meta_is(claim)])
                .and_then([TxnOp::txn(self.attempt(&attempt, lease, None, None))]);
            match call.transact(Nature::Writes, write).await {
                Ok(answer) if winner(&answer, 1).is_some() => {
                    return Ok(won(claim, attempt, &answer));
                }
                // What changed will be seen by looking again.
                Ok(_) => {}
                Err(Failure::NoLease) => self.leases.forget(call, lease).await,
                Err(Failure::Unanswered(_)) => return Ok(Acquired::Unsure(slot.clone(), read)),
                Err(failure) => return Err(call.error(Nature::Writes, &failure)),
            }
        }
        Err(restless(call))
    }

    async fn take_any(
        &self,
        call: &Call<'_>,
        claim: &Claim,
        wanted: Wanted,
    ) -> Result<Acquired, Error> {
        for _ in 0..ROUNDS_MAX {
            let sight = self.look(call, Sight::of_group(call, &self.keys, Group::Workers)).await?;
            if let Some(held) = held(&sight, claim) {
                return Ok(held);
            }
            if sight.meta_version() != Some(claim.meta) {
                return Ok(Acquired::MetaMoved);
            }
            let Wanted { first, last, favourite } = wanted;
            let (best, census) = candidates(sight.entries(), first, last, favourite, claim);
            let mut attempts = attempts(best, &sight, claim);
            if attempts.is_empty() {
                return Ok(Acquired::Full(census));
            }
            let lease = self.lease(call, claim.ttl).await?;
            let write = self.any_of(&attempts, claim, lease);
            match call.transact(Nature::Writes, write).await {
                Ok(answer) if answer.succeeded() => {
                    if let Some(index) = winner(&answer, attempts.len()) {
                        return Ok(won(claim, attempts.swap_remove(index), &answer));
                    }
                }
                Ok(answer) if is_spent(&answer) => {
                    // Served before. If that is not in sight now, its tenure is over.
                    let look = Sight::of_group(call, &self.keys, Group::Workers);
                    let sight = self.look(call, look).await?;
                    return Ok(held(&sight, claim).unwrap_or(Acquired::Taken));
                }
                Ok(_) => return Ok(Acquired::MetaMoved),
                Err(Failure::NoLease) => self.leases.forget(call, lease).await,
                Err(failure) => return Err(call.error(Nature::Writes, &failure)),
            }
        }
        Err(restless(call))
    }

    /// Tries one slot after the other, and takes at most one.
    ///
    /// The claim's own key makes it so that of all repetitions of a claim only one is ever
    /// served: a request that was thought lost and arrives late would otherwise take a second
    /// slot, which this process would keep alive without knowing.
    fn any_of(&self, attempts: &[Attempt], claim: &Claim, lease: i64) -> Txn {
        let key = self.keys.claim(claim.nonce);
        let mut rest = None;
        for attempt in attempts.iter().rev() {
            let mark = TxnOp::put(key.clone(), attempt.slot.to_string(), leased(lease));
            rest = Some(self.attempt(attempt, lease, Some(mark), rest));
        }
        Txn::new()
            .when([self.meta_is(claim), Compare::create_revision(&*key, CompareOp::Equal, 0)])
            .and_then(rest.map(TxnOp::txn).into_iter().collect::<Vec<_>>())
            .or_else([TxnOp::get(key, None)])
    }

    /// Takes one slot if it still is what was seen, and does `mark` along with it; else `rest`.
    fn attempt(
        &self,
        attempt: &Attempt,
        lease: i64,
        mark: Option<TxnOp>,
        rest: Option<Txn>,
    ) -> Txn {
        let Attempt { slot, seen, record } = attempt;
        let (key, own, born) = (self.keys.record(slot), self.keys.own(slot), self.keys.born(slot));
        let nonce = record.nonce.map(|nonce| nonce.to_string()).unwrap_or_default();
        let mut take = vec![
            TxnOp::put(key.clone(), json(record), None),
            TxnOp::put(own.clone(), nonce, leased(lease)),
            TxnOp::put(born.clone(), record.token.to_string(), None),
        ];
        take.extend(mark);
        Txn::new()
            .when([
                Compare::mod_revision(key, CompareOp::Equal, revision(seen.version)),
                Compare::create_revision(own, CompareOp::Equal, 0),
                // A slot that was used and forgotten since is not what was seen.
                Compare::mod_revision(born, CompareOp::Equal, revision(seen.born)),
            ])
            .and_then(take)
            .or_else(rest.map(TxnOp::txn).into_iter().collect::<Vec<_>>())
    }

    fn meta_is(&self, claim: &Claim) -> Compare {
        Compare::mod_revision(self.keys.meta(), CompareOp::Equal, revision(claim.meta))
    }
}

#[derive(Clone, Copy)]
struct Wanted {
    first: u32,
    last: u32,
    favourite: Option<u32>,
}

pub(super) fn leased(lease: i64) -> Option<PutOptions> {
    Some(PutOptions::new().with_lease(lease))
}

/// The tenure that the claim has won before, if a slot carries its nonce.
fn held(sight: &Sight, claim: &Claim) -> Option<Acquired> {
    let (slot, cell) = sight.carrier(claim.nonce)?;
    let record = cell.record.as_ref()?;
    Some(Acquired::Held(rules::tenure(claim, slot.clone(), cell.version, record)))
}

fn won(claim: &Claim, attempt: Attempt, answer: &TxnResponse) -> Acquired {
    Acquired::Held(rules::tenure(claim, attempt.slot, written(answer), &attempt.record))
}

fn attempts(best: Vec<Candidate>, sight: &Sight, claim: &Claim) -> Vec<Attempt> {
    let attempt = |candidate: Candidate| {
        let Candidate { slot, found, .. } = candidate;
        let record = rules::acquire(&found, claim).ok()?;
        // What `candidates` fills in was not found, so it is new.
        let seen = if found == Found::New { Cell::default() } else { sight.cell(&slot) };
        Some(Attempt { slot, seen, record })
    };
    best.into_iter().filter_map(attempt).take(CANDIDATES_MAX).collect()
}

/// Which of the nested attempts was carried out.
fn winner(answer: &TxnResponse, attempts: usize) -> Option<usize> {
    if !answer.succeeded() {
        return None;
    }
    let mut nested = answer.op_responses();
    for index in 0..attempts {
        let Some(TxnOpResponse::Txn(tried)) = nested.pop() else { return None };
        if tried.succeeded() {
            return Some(index);
        }
        nested = tried.op_responses();
    }
    None
}

/// Whether the claim's own key was there already.
fn is_spent(answer: &TxnResponse) -> bool {
    let is_found =
        |found: &TxnOpResponse| matches!(found, TxnOpResponse::Get(got) if !got.kvs().is_empty());
    answer.op_responses().iter().any(is_found)
}

fn restless(call: &Call<'_>) -> Error {
    let why = format_args!("others were faster {ROUNDS_MAX} times in a row");
    call.problem(ErrorKind::Unavailable, why)
}
