//! The plan for meta: creating it, checking it, raising its quarantine.

use std::time::Duration;

use super::{Now, Phase, Plan, Policy, millis};
use crate::error::Error;
use crate::keeper::status::{ClockSkew, Waiting};
use crate::lease::Loss;
use crate::new_namespace::NewNamespace;
use crate::nonce::Nonce;
use crate::record::{Meta, Token, UnixMs, Versioned};
use crate::rules::{CLOCK_BOUND_MS, HEARD_FOR, META_EVERY, WINDOW_MAX_MS};
use crate::store::{Look, Put};

/// Before meta is read again that could not be read, by somebody whom others count on.
const META_RETRY: Duration = Duration::from_millis(500);

impl Plan {
    /// The namespace was read. `orphans`: it has no meta, or a blank one, and yet there are workers.
    /// The loss, if this ends a tenure.
    pub fn meta_read(
        &mut self,
        now: Now,
        read: Result<Look, Error>,
        orphans: bool,
    ) -> Option<Loss> {
        self.meta_not_before = now.boot + META_RETRY;
        let Look { meta, clock, .. } = match read {
            Ok(look) => look,
            Err(error) => {
                self.ended();
                self.failed_to_read_meta(now, error);
                return None;
            }
        };
        self.meta_seen = self.asked;
        let incarnation = meta.as_ref().map(|meta| meta.value.incarnation);
        self.owes |= self.granted.is_some() && incarnation != self.granted_in;
        self.ended();
        let loss = self.is_forgotten_by(meta.as_ref()).then_some(Loss::Vanished);
        if let Some(loss) = &loss {
            self.lose(loss.clone(), now);
        }
        let holds = matches!(self.phase, Phase::Holding { .. } | Phase::Leaving { .. });
        if !holds {
            self.answered();
        }
        match meta {
            // A holder has nothing to decide about it.
            Some(meta) if holds => self.meta = Some(meta),
            _ if self.is_clock_wrong(clock, now) => self.meta = None,
            Some(meta) => self.agree(meta, orphans, now),
            None => self.draft = Some((None, self.new_meta(now, clock, orphans))),
        }
        loss
    }

    /// Goes by the namespace's meta record, if that is possible.
    fn agree(&mut self, meta: Versioned<Meta>, orphans: bool, now: Now) {
        let Policy::Worker(worker) = &self.policy else { return self.adopt(meta, now) };
        if meta.value.is_blank() {
            // The same namespace goes on: those who campaign in it need not notice.
            let Meta { incarnation, created, quarantine, token_floor, .. } = meta.value;
            let new = self.new_meta(now, None, orphans);
            let quarantine = new.quarantine.max(quarantine);
            let filled = Meta { incarnation, created, quarantine, token_floor, ..new };
            self.draft = Some((Some(meta.version), filled));
            return;
        }
        match worker.setup.disagreement(&meta.value) {
            Some(refusal) => self.refuse(refusal),
            None => self.adopt(meta, now),
        }
    }

    /// A holder's own requests tell whether the store is in trouble.
    fn failed_to_read_meta(&mut self, now: Now, error: Error) {
        match self.phase {
            Phase::Holding { .. } => {}
            _ => self.failed(now, error),
        }
    }

    /// Whether a tenure is held that the namespace knows nothing of: it was created anew.
    fn is_forgotten_by(&self, meta: Option<&Versioned<Meta>>) -> bool {
        let incarnation = meta.map(|meta| meta.value.incarnation);
        matches!(self.phase, Phase::Holding { .. }) && incarnation != self.granted_in
    }

    /// Judges the clock before anything is written that is counted from it.
    fn is_clock_wrong(&mut self, store_clock: Option<UnixMs>, now: Now) -> bool {
        let Some(store_now) = store_clock.filter(|_| self.uses_times()) else { return false };
        self.store_has_clock = true;
        let is_wrong = now.unix.abs_diff(store_now) > CLOCK_BOUND_MS;
        if is_wrong {
            self.wait_for(Waiting::Clock(ClockSkew::to_store(now.unix, store_now)));
            self.not_before = now.boot + self.heartbeat;
        }
        is_wrong
    }

    fn adopt(&mut self, meta: Versioned<Meta>, now: Now) {
        self.met = true;
        self.widest_window_ms = self.widest_window_ms.max(meta.value.window_ms);
        let Meta { incarnation, quarantine, token_floor, .. } = meta.value;
        let raised = Meta {
            quarantine: quarantine.max(self.owed(incarnation)),
            token_floor: token_floor.max(self.owed_token(incarnation)),
            ..meta.value.clone()
        };
        if raised == meta.value {
            self.covered_by(meta, now);
        } else {
            self.draft = Some((Some(meta.version), raised));
        }
    }

    /// What the quarantine of a namespace must be for nobody to use what was granted here.
    fn owed(&self, incarnation: Nonce) -> UnixMs {
        let is_other = self.granted_in != Some(incarnation);
        let granted = self.granted.filter(|_| is_other);
        granted.max(self.forgotten).unwrap_or(0)
    }

    /// The token that the next leader in a namespace must be above: one that was seen before the
    /// namespace was created anew.
    fn owed_token(&self, incarnation: Nonce) -> Token {
        let is_other = self.granted_in.is_some_and(|known| known != incarnation);
        if is_other { self.token } else { Token::default() }
    }

    fn covered_by(&mut self, meta: Versioned<Meta>, now: Now) {
        if self.owes && now.boot > self.heard + HEARD_FOR {
            // Others may have come before: a process that was stopped cannot tell.
            (self.granted, self.status.grant) = (None, None);
        }
        self.owes = false;
        self.forgotten = None;
        self.granted_in = Some(meta.value.incarnation);
        self.meta = Some(meta);
    }

    fn new_meta(&self, now: Now, clock: Option<UnixMs>, orphans: bool) -> Meta {
        // Where nobody leases workers yet there is no layout and no window.
        let (mut layout, mut window_ms) = (None, 0);
        if let Policy::Worker(worker) = &self.policy {
            let setup = &worker.setup;
            layout = Some((setup.layout.as_str(), setup.workers.unwrap_or((0, setup.last_worker))));
            let budget = millis(setup.timing.outage_budget);
            window_ms = budget.max(self.widest_window_ms).min(WINDOW_MAX_MS);
        }
        // A clock that no times come from was not judged: the store's is nearer to everybody's.
        let own = now.unix;
        let now_ms = if self.uses_times() { own } else { clock.unwrap_or(own) };
        let new = NewNamespace {
            layout,
            window_ms,
            first_use: self.first_use,
            was_there: layout.is_some() && (self.met || orphans),
            owed: self.owed(now.nonce),
            now: now_ms,
            incarnation: now.nonce,
        };
        Meta { token_floor: self.owed_token(now.nonce), ..new.meta() }
    }

    /// Meta was written, or not.
    pub fn meta_written(&mut self, now: Now, written: Result<Put, Error>) {
        // A draft counts its quarantine from when it was made: one that failed is made anew.
        let draft = self.draft.take();
        if let (Ok(Put::Done(version)), Some((_, value))) = (&written, draft) {
            self.met = true;
            self.covered_by(Versioned { version: *version, value }, now);
        } else {
            // Whoever may still use times reads meta again soon.
            self.meta_seen = now.boot.saturating_sub(META_EVERY);
            self.meta_not_before = now.boot + META_RETRY;
        }
        self.ended();
        match written {
            Err(error) => self.failed(now, error),
            Ok(_) => self.answered(),
        }
    }
}
