//! The admission of requests for IDs, whatever a client speaks: may it have these, how many may it have, and then the IDs.
//!
//! Who a client is was found out before, from the head of its request ([`Authenticator::admit`](crate::policy::access::Authenticator::admit)).
//! HTTP, gRPC and RESP only translate: every rule about IDs is in this function, in this order.

use std::time::Duration;

use frazil::coord::Token;
use frazil::{Batch, Issued};
use frazil_wire::ApiError;

use crate::app::Shared;
use crate::cluster::scopes::{self, Origin};
use crate::metrics::Protocol;
use crate::net::listener::Remote;
use crate::policy::access::{Caller, Permission};
use crate::policy::keys::QuotaLeft;
use crate::policy::queue::{Count, Flow};

/// What a client asks for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IdsRequest<'a> {
    pub(crate) count: Count,
    /// Whether it is several requests for one ID each, which a client sent in a row.
    pub(crate) is_run: bool,
    /// The name of a scope; empty for none.
    pub(crate) scope: &'a str,
    /// How long the client waits, if it says so.
    pub(crate) patience: Option<Duration>,
    /// Whether it asks again when its quota has more: it is slowed down then, not refused.
    pub(crate) waits_for_quota: bool,
    pub(crate) origin: Origin,
    pub(crate) protocol: Protocol,
}

impl IdsRequest<'_> {
    /// How many requests of the client it is.
    pub(crate) fn requests(&self) -> u64 {
        match self.count {
            Count::Exactly(count) | Count::UpTo(count) if self.is_run => count.into(),
            _ => 1,
        }
    }
}

/// The IDs that a client gets, for every protocol.
#[derive(Debug)]
pub(crate) struct IssuedIds {
    pub(crate) batch: Batch,
    /// The worker in the IDs, and the token of its lease.
    pub(crate) worker: u32,
    pub(crate) token: Token,
    /// The node that issued them, if it was another one.
    pub(crate) issuing_node: Option<IssuingNode>,
    /// What is left of the key's quota, if it has one.
    pub(crate) left: Option<QuotaLeft>,
}

/// The node that issued IDs, if it is another one.
#[derive(Debug)]
pub(crate) struct IssuingNode {
    pub(crate) node: String,
    pub(crate) region: Option<String>,
}

impl From<Issued> for IssuedIds {
    /// IDs of this node.
    fn from(Issued { batch, worker, token, .. }: Issued) -> Self {
        Self { batch, worker, token, issuing_node: None, left: None }
    }
}

impl Shared {
    /// Issues the IDs that a caller asks for, if it may have them.
    ///
    /// # Errors
    /// Why it gets none; what it may not do comes first, then what cannot be, then what is too much now.
    pub(crate) async fn issue(
        &self,
        remote: &Remote,
        caller: &Caller,
        ask: IdsRequest<'_>,
    ) -> Result<IssuedIds, ApiError> {
        let requests = ask.requests();
        let permission = match ask.origin {
            Origin::Client => Permission::Ids,
            Origin::Peer => Permission::Peer,
        };
        caller.check(permission, requests)?;
        caller.check_scope(Some(ask.scope).filter(|name| !name.is_empty()), requests)?;
        let scope = self.issuer.scope(ask.scope)?;
        let flow = Flow { key: caller.number(), connection: remote.connection };
        let mut issue_request = self.issuer.issue_request(ask.count, ask.patience, flow)?;
        let charged = caller.charge(issue_request.count).inspect_err(|error| {
            if !ask.waits_for_quota {
                caller.count_refused(error, requests);
            }
        })?;
        let left = charged.map(|(count, left)| {
            issue_request.count = Count::Exactly(count);
            left
        });
        let issued = scopes::issue(self, scope, issue_request, ask.origin).await?;
        self.metrics.requests.answered(ask.protocol, scope, &issued, ask.is_run);
        self.metrics.requests.issued_to(caller, issued.batch.len() as u64);
        Ok(IssuedIds { left, ..issued })
    }
}
