//! Commands for IDs.

use std::io;

use frazil_wire::ApiError;

use super::super::command::{Next, invalid, is};
use super::super::frame::Arguments;
use super::super::reply::Shape;
use super::{Connection, Pending};
use crate::cluster::scopes::Origin;
use crate::encode::Pieces;
use crate::metrics::{Method, Protocol};
use crate::policy::admission::{IdsRequest, IssuedIds};
use crate::policy::queue::Count;

/// Commands for one ID each that are answered together.
const RUN_MAX: u32 = 1024;

/// Commands in a row that want one ID each: they are answered with one grant.
#[derive(Debug, Default)]
pub(super) struct Run {
    count: u32,
    shape: Shape,
}

impl Connection {
    /// Whether a command wants one ID as those of the run do. It is counted among them then.
    #[inline]
    pub(super) fn joins_run(&mut self, arguments: &Arguments) -> bool {
        let word = |range: &std::ops::Range<usize>| &self.input[range.clone()];
        let shape = match arguments.as_slice() {
            [name, _key] if is(word(name), "INCR") => Shape::Integer,
            [name] if is(word(name), "ID.NEXT") => Shape::Text,
            _ => return false,
        };
        let fits = self.run.count == 0 || (self.run.shape == shape && self.run.count < RUN_MAX);
        // Whether integers can be given at all is said to each command on its own.
        if !fits || (shape == Shape::Integer && !self.shared.issuer.layout().fits_i64()) {
            return false;
        }
        self.run = Run { count: self.run.count + 1, shape };
        true
    }

    /// Answers the commands of the run.
    pub(super) async fn answer_run(&mut self) -> io::Result<()> {
        while self.run.count > 0 {
            let Run { count, shape } = self.run;
            match self.grant(Count::UpTo(count), "").await? {
                Ok(issued) => {
                    let batch = &issued.batch;
                    batch.runs().for_each(|run| self.replies.run(&run, shape));
                    self.tally.answered += batch.len() as u64;
                    self.run.count -= u32::try_from(batch.len()).unwrap_or(count).min(count);
                    self.flush_if_long().await?;
                }
                Err(error) => {
                    (0..count).for_each(|_| drop(self.fail(Method::Next, &error)));
                    self.run.count = 0;
                }
            }
        }
        Ok(())
    }

    /// IDs for whoever this is. What was answered before is sent first if they are not there at once.
    async fn grant(
        &mut self,
        count: Count,
        scope: &str,
    ) -> io::Result<Result<IssuedIds, ApiError>> {
        let (patience, origin, protocol) = (None, Origin::Client, Protocol::Resp);
        let is_run = matches!(count, Count::UpTo(_));
        let ask =
            IdsRequest { count, is_run, scope, patience, waits_for_quota: false, origin, protocol };
        let caller = match self.session.caller(&self.shared.authenticator, ask.requests()) {
            Ok(caller) => caller.clone(),
            Err(error) => return Ok(Err(error)),
        };
        let (shared, remote) = (self.shared.clone(), self.session.remote.clone());
        let issuing = shared.issue(&remote, &caller, ask);
        tokio::pin!(issuing);
        Ok(tokio::select! {
            biased;
            issued = &mut issuing => issued,
            () = std::future::ready(()) => {
                self.flush().await?;
                issuing.await
            }
        })
    }

    /// `INCR key`, and what is the same as it.
    pub(super) fn incr(&mut self) -> Pending {
        if !self.shared.issuer.layout().fits_i64() {
            let why = "IDs of this layout do not fit a signed integer: use ID.NEXT";
            return self.fail(Method::Next, &invalid(why));
        }
        Pending::Issue { count: None, scope: String::new(), shape: Shape::Integer }
    }

    pub(super) fn next(&mut self, words: &[&[u8]]) -> Pending {
        let wanted = Next::parse(words).and_then(|next| {
            if next.shape == Shape::Integer && !self.shared.issuer.layout().fits_i64() {
                return Err(invalid("IDs of this layout do not fit a signed integer: use AS STR"));
            }
            Ok(next)
        });
        match wanted {
            Ok(Next { count, scope, shape }) => {
                Pending::Issue { count, scope: scope.to_owned(), shape }
            }
            Err(error) => self.fail(Method::Next, &error),
        }
    }

    /// Answers a command for IDs of a scope, or for many.
    pub(super) async fn issue(
        &mut self,
        count: Option<u32>,
        scope: &str,
        shape: Shape,
    ) -> io::Result<()> {
        match self.grant(Count::Exactly(count.unwrap_or(1)), scope).await? {
            Ok(issued) => {
                self.tally.answered += 1;
                let batch = &issued.batch;
                if count.is_some() {
                    self.replies.array(batch.len());
                }
                for run in Pieces::new(batch) {
                    self.replies.run(&run, shape);
                    self.flush_if_long().await?;
                }
            }
            Err(error) => drop(self.fail(Method::Next, &error)),
        }
        Ok(())
    }
}
