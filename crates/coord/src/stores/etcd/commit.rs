//! A commit as one transaction: the first change whose conditions hold is written.
//!
//! A change names the version and the nonce that were read. Revisions come back after a snapshot
//! was restored, nonces do not; and as a record's text begins with its nonce, the server can compare
//! it. Texts that begin otherwise (damaged ones, and those of versions before this one) are compared
//! as a whole, in a second transaction.

use std::collections::HashMap;

use frazil_etcd::{
    Compare, CompareResult, OperationResponse, PutRequest, RequestOp, TxnRequest, TxnResponse,
};

use super::EtcdStore;
use super::failure::Failure;
use super::remote::{Call, RequestEffect};
use super::snapshot::{Revisions, ServedClaim, Snapshot, revision, revisions, written};
use crate::nonce::Nonce;
use crate::record::{Version, json};
use crate::slot::Slot;
use crate::store::{Change, Commit, Committed, Look, PresenceChange, Present};

/// How many changes one transaction tries. If all of a crowd see the same free slots, a claim
/// fails on all of these with a chance of 1 in 9 on average; more would make every request larger.
pub(super) const CHANGES_MAX: usize = 8;

/// How often a transaction is sent: once more for each of a lease that has ended, texts that begin
/// otherwise, and a claim key that is out of date.
const ROUNDS_MAX: usize = 4;

/// What was learned by a transaction that wrote nothing, for the next one.
#[derive(Default)]
struct FailedTransaction {
    /// Texts to be compared as a whole.
    texts: HashMap<Slot, Vec<u8>>,
    /// The revision of a claim key that is out of date; 0 if there was none.
    claim: i64,
}

/// One set of conditions under which a change is made, and what is then done.
struct Branch {
    /// Of the change.
    index: usize,
    conditions: Vec<Compare>,
    operations: Vec<RequestOp>,
}

impl EtcdStore {
    pub(super) async fn write(
        &self,
        call: &Call<'_>,
        commit: &Commit,
    ) -> Result<Committed, Failure> {
        let changes = &commit.changes[..commit.changes.len().min(CHANGES_MAX)];
        let mut learned = FailedTransaction::default();
        for _ in 0..ROUNDS_MAX {
            let leases = self.leases_of(call, changes).await?;
            let once = commit.served_once();
            let branches = self.branches(changes, &leases, &learned, once);
            let indexes: Vec<usize> = branches.iter().map(|branch| branch.index).collect();
            let txn = self.transaction(commit, changes, branches, learned.claim);
            let answer = match call.transact(RequestEffect::Writes, &txn).await {
                Err(Failure::NoLease) => {
                    for lease in leases.into_iter().flatten() {
                        self.leases.forget(call, lease).await;
                    }
                    continue;
                }
                answer => answer?,
            };
            let version = written(&answer);
            let (branch, found) = self.outcome(answer, indexes.len());
            if let Some(branch) = branch {
                // It is written, whatever meta looks like.
                let unsure = |failure: Failure| Failure::Unanswered(failure.into_reason());
                let look = found.look(&self.keys).map_err(unsure)?;
                let index = indexes[branch];
                return Ok(Committed::Done { index, version, expires: None, look });
            }
            if let Some(look) = self.conflict(call, changes, once, &found, &mut learned).await? {
                return Ok(Committed::Conflict(look));
            }
        }
        Err(Failure::NoLease)
    }

    /// The lease that each change's presence is to hang on.
    async fn leases_of(
        &self,
        call: &Call<'_>,
        changes: &[Change],
    ) -> Result<Vec<Option<i64>>, Failure> {
        let mut leases = Vec::with_capacity(changes.len());
        for change in changes {
            leases.push(match change.presence_change {
                PresenceChange::For(ttl) => Some(self.leases.fresh(call, ttl).await?),
                PresenceChange::Ended => None,
            });
        }
        Ok(leases)
    }

    /// One branch within the other, and reads where none can be carried out.
    ///
    /// A commit of several changes has a key of its own, so that of all its repetitions only one is
    /// ever served: a request that was thought lost and arrives late would otherwise take a second
    /// slot, which this process would keep alive without knowing.
    fn transaction(
        &self,
        commit: &Commit,
        changes: &[Change],
        branches: Vec<Branch>,
        claim: i64,
    ) -> TxnRequest {
        let mut gets = Snapshot::gets(&self.keys, changes.iter().map(|change| &change.slot));
        let mut rest = gets.clone();
        for Branch { conditions, operations, .. } in branches.into_iter().rev() {
            let tried = TxnRequest { compare: conditions, success: operations, failure: rest };
            rest = vec![tried.into()];
        }
        let mut conditions = Vec::new();
        if let Some(meta) = commit.meta {
            let meta = revision(meta.0);
            conditions.push(Compare::mod_revision(self.keys.meta(), CompareResult::Equal, meta));
        }
        if let Some(nonce) = commit.served_once() {
            let key = self.keys.claim(nonce);
            conditions.push(Compare::mod_revision(&*key, CompareResult::Equal, claim));
            gets.push(RequestOp::get(key));
        }
        TxnRequest { compare: conditions, success: rest, failure: gets }
    }

    fn branches(
        &self,
        changes: &[Change],
        leases: &[Option<i64>],
        learned: &FailedTransaction,
        once: Option<Nonce>,
    ) -> Vec<Branch> {
        let claim = once.map(|nonce| self.keys.claim(nonce));
        let mut branches = Vec::new();
        for (index, (change, lease)) in changes.iter().zip(leases).enumerate() {
            let own = self.keys.own(&change.slot);
            let nobody = Compare::create_revision(&*own, CompareResult::Equal, 0);
            let as_read = self.as_read(change, learned.texts.get(&change.slot));
            let mut writes = self.writes(change, *lease);
            writes.extend(claim.clone().map(|key| RequestOp::put(key, change.slot.to_string())));
            if let (Present::Holder, Some(nonce)) = (change.present, change.nonce) {
                let holder = Compare::value(own, CompareResult::Equal, nonce.to_string());
                let conditions = as_read.iter().cloned().chain([holder]).collect();
                branches.push(Branch { index, conditions, operations: writes.clone() });
            }
            // Those who watch see that somebody came, or came back.
            let token = change.record.token.to_string();
            writes.push(RequestOp::put(self.keys.born(&change.slot), token));
            let conditions = as_read.into_iter().chain([nobody]).collect();
            branches.push(Branch { index, conditions, operations: writes });
        }
        branches
    }

    /// That the slot's record still is what was read.
    fn as_read(&self, change: &Change, text: Option<&Vec<u8>>) -> Vec<Compare> {
        let key = self.keys.record(&change.slot);
        let mut compares = self.at_version(&change.slot, change.version);
        let has_text = matches!(revisions(change.version), Revisions::Record(_));
        match text {
            Some(text) => compares.push(Compare::value(key, CompareResult::Equal, &**text)),
            // A text that is not there equals none, so a nonce in it never compares equal.
            None if has_text || change.nonce.is_some() => {
                let start = beginning(change.nonce);
                // No JSON has this byte.
                let end = [&start[..], b"\xff"].concat();
                compares.push(Compare::value(&*key, CompareResult::Greater, start));
                compares.push(Compare::value(key, CompareResult::Less, end));
            }
            None => {}
        }
        compares
    }

    /// That the slot has a version.
    pub(super) fn at_version(&self, slot: &Slot, version: Version) -> Vec<Compare> {
        let is_at = |key, at| Compare::mod_revision(key, CompareResult::Equal, at);
        let (record, born) = (self.keys.record(slot), self.keys.born(slot));
        match revisions(version) {
            Revisions::Unused => vec![is_at(record, 0), is_at(born, 0)],
            Revisions::Marker(at) => vec![is_at(record, 0), is_at(born, at)],
            Revisions::Record(at) => vec![is_at(record, at)],
        }
    }

    /// What makes a change, and reads meta.
    fn writes(&self, change: &Change, lease: Option<i64>) -> Vec<RequestOp> {
        let Change { slot, record, .. } = change;
        let own = self.keys.own(slot);
        let presence = match lease {
            Some(lease) => {
                let nonce = record.nonce.map(|nonce| nonce.to_string()).unwrap_or_default();
                PutRequest { key: own.into(), value: nonce.into(), lease }.into()
            }
            None => RequestOp::delete(own),
        };
        let text = RequestOp::put(self.keys.record(slot), json(record));
        let mut writes = vec![RequestOp::get(self.keys.meta()), text, presence];
        // No slot carries the nonce that was read any more.
        let gone = change.nonce.filter(|read| record.nonce != Some(*read));
        writes.extend(gone.map(|nonce| RequestOp::delete(self.keys.claim(nonce))));
        writes
    }

    /// Which branch was carried out, if one was, and what was read.
    fn outcome(&self, mut answer: TxnResponse, branches: usize) -> (Option<usize>, Snapshot) {
        if answer.succeeded {
            for branch in 0..branches {
                let last = answer.responses.pop().and_then(|last| last.response);
                let Some(OperationResponse::ResponseTxn(tried)) = last else { break };
                answer = tried;
                if answer.succeeded {
                    return (Some(branch), Snapshot::of(&self.keys, answer));
                }
            }
        }
        (None, Snapshot::of(&self.keys, answer))
    }

    /// What is there instead of what was read. `None`: something was learned, try again.
    async fn conflict(
        &self,
        call: &Call<'_>,
        changes: &[Change],
        once: Option<Nonce>,
        snapshot: &Snapshot,
        learned: &mut FailedTransaction,
    ) -> Result<Option<Look>, Failure> {
        if let (Some(served), Some(nonce)) = (snapshot.served_claim(), once) {
            learned.claim = served.revision;
            return self.served_with(call, served, nonce).await;
        }
        if learned.learn_texts(changes, snapshot) {
            return Ok(None);
        }
        let slots = changes.iter().map(|change| &change.slot);
        snapshot.look_at(&self.keys, slots).map(Some)
    }

    /// The slot that a commit was served with before. `None` if it does not carry the nonce any
    /// more: its record was deleted, or a version that knows less of claims has replaced it.
    async fn served_with(
        &self,
        call: &Call<'_>,
        served: &ServedClaim,
        nonce: Nonce,
    ) -> Result<Option<Look>, Failure> {
        let Some(slot) = &served.slot else { return Ok(None) };
        let look = self.look_at(call, std::slice::from_ref(slot)).await?;
        Ok(Some(look).filter(|look| look.carrying(nonce).is_some()))
    }
}

impl FailedTransaction {
    /// Notes the texts that are what was read, and begin otherwise. `false` if there are no more.
    fn learn_texts(&mut self, changes: &[Change], snapshot: &Snapshot) -> bool {
        let known = self.texts.len();
        for change in changes {
            let Some(cell) = snapshot.cell(&change.slot) else { continue };
            let is_as_read = change.is_as_read(cell.version(), &cell.found());
            if let Some(text) = cell.text().filter(|_| is_as_read)
                && !text.starts_with(&beginning(change.nonce))
            {
                self.texts.insert(change.slot.clone(), text.to_vec());
            }
        }
        self.texts.len() > known
    }
}

/// What the text of a record with this nonce begins with.
fn beginning(nonce: Option<Nonce>) -> Vec<u8> {
    format!("{{\"nonce\":{}", json(&nonce)).into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Record, Token};

    #[test]
    fn the_text_of_a_record_begins_with_its_nonce() {
        for nonce in [None, Some(Nonce::from_bits(7))] {
            let record = Record {
                nonce,
                token: Token(1),
                holder: "somebody".into(),
                floor: 1,
                horizon: 2,
                renewed: 1,
                expires: None,
                released: false,
                info: std::collections::BTreeMap::new(),
            };
            assert!(json(&record).as_bytes().starts_with(&beginning(nonce)), "{record:?}");
        }
    }
}
