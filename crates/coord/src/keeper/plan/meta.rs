//! Agreeing on what a namespace is: creating meta, checking it, raising its quarantine.

use super::{Now, Plan, millis};
use crate::error::Error;
use crate::keeper::setup::FirstUse;
use crate::record::{FORMAT, Meta, Versioned};
use crate::rules::{RUN_AHEAD_MS, WINDOW_MAX_MS};
use crate::store::Put;

/// Added to whatever is waited for: clocks differ.
const SKEW_MS: u64 = 2000;
/// How long the request may take in which a live holder notices that it was forgotten.
const ANSWER_MS: u64 = 5000;

impl Plan {
    /// Meta was read. `orphans`: there is none, or a blank one, and yet there are workers.
    pub fn meta_read(
        &mut self,
        now: Now,
        read: Result<Option<Versioned<Meta>>, Error>,
        orphans: bool,
    ) {
        match read {
            Err(error) => self.failed(now, error),
            Ok(Some(meta)) if meta.value.is_blank() => {
                self.answered();
                // The same namespace goes on: those who campaign in it need not notice.
                let Meta { incarnation, created, quarantine, .. } = meta.value;
                let new = self.new_meta(now, orphans);
                let quarantine = new.quarantine.max(quarantine);
                let filled = Meta { incarnation, created, quarantine, ..new };
                self.draft = Some((Some(meta.version), filled));
            }
            Ok(Some(meta)) => {
                self.answered();
                match self.setup.disagreement(&meta.value) {
                    Some(refusal) => self.refuse(refusal),
                    None => self.adopt(meta),
                }
            }
            Ok(None) => {
                self.answered();
                self.draft = Some((None, self.new_meta(now, orphans)));
            }
        }
    }

    fn adopt(&mut self, meta: Versioned<Meta>) {
        self.met = true;
        self.widest_window_ms = self.widest_window_ms.max(meta.value.window_ms);
        let needed = self.forgotten.unwrap_or(0);
        if meta.value.quarantine < needed {
            let raised = Meta { quarantine: needed, ..meta.value };
            self.draft = Some((Some(meta.version), raised));
        } else {
            self.forgotten = None;
            self.meta = Some(meta);
        }
    }

    fn new_meta(&self, now: Now, orphans: bool) -> Meta {
        let window_ms =
            millis(self.setup.timing.outage_budget).max(self.widest_window_ms).min(WINDOW_MAX_MS);
        let heartbeat_ms = millis(self.setup.timing.heartbeat);
        // What was promised before is unknown, but no more than a window from now.
        let forgotten = now.unix.saturating_add(window_ms + SKEW_MS);
        let quarantine = match self.setup.first_use {
            _ if self.met || orphans => forgotten,
            FirstUse::AtOnce => 0,
            // Live holders of a forgotten namespace speak up within a heartbeat, once an answer
            // that they wait for is given up. A quarantine is left when it is this near.
            FirstUse::AfterHeartbeat => {
                let spoken_up_ms = heartbeat_ms + ANSWER_MS + SKEW_MS + RUN_AHEAD_MS;
                now.unix.saturating_add(spoken_up_ms)
            }
            FirstUse::AfterWindow => forgotten,
        };
        let (first_worker, last_worker) = self.setup.workers.unwrap_or((0, self.setup.last_worker));
        Meta {
            format: FORMAT,
            incarnation: now.nonce,
            layout: self.setup.layout.clone(),
            first_worker,
            last_worker,
            window_ms,
            quarantine: quarantine.max(self.forgotten.unwrap_or(0)),
            created: now.unix,
        }
    }

    /// Meta was written, or not.
    pub fn meta_written(&mut self, now: Now, written: Result<Put, Error>) {
        // A draft counts its quarantine from when it was made: one that failed is made anew.
        let draft = self.draft.take();
        match written {
            Err(error) => self.failed(now, error),
            Ok(put) => {
                self.answered();
                if let (Put::Done(version), Some((_, value))) = (put, draft) {
                    self.met = true;
                    self.forgotten = None;
                    self.meta = Some(Versioned { version, value });
                }
            }
        }
    }
}
