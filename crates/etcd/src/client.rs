//! The connection to one member, and what it can be asked.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;
use tonic::{Request, Response, Status};

use crate::config::{Config, ConfigError};
use crate::proto::etcdserverpb::cluster_client::ClusterClient;
use crate::proto::etcdserverpb::kv_client::KvClient;
use crate::proto::etcdserverpb::lease_client::LeaseClient;
use crate::proto::etcdserverpb::maintenance_client::MaintenanceClient;
use crate::proto::etcdserverpb::{
    LeaseGrantRequest, LeaseKeepAliveRequest, MemberListRequest, StatusRequest, StatusResponse,
    TxnRequest, TxnResponse, WatchCreateRequest,
};
use crate::session::{Session, Token, request};
use crate::watch::{self, Watch};

/// A connection to one member of a cluster. Clones share it.
///
/// It is made by the first request, and made again by the first one after it was lost. A request
/// waits for its answer for as long as it takes: bound it by dropping it.
#[derive(Clone)]
pub struct Client {
    channel: Channel,
    session: Arc<Session>,
    answer_max: usize,
}

impl Client {
    /// Prepares a connection to a member, by its host and port. Nothing is sent yet.
    ///
    /// # Errors
    /// If the address is none, or the TLS settings are of no use.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn new(address: &str, config: &Config) -> Result<Self, ConfigError> {
        Ok(Self {
            channel: config.channel(address)?,
            session: Arc::new(Session::new(config.login.clone())),
            answer_max: config.answer_max,
        })
    }

    /// Whether etcd asked for no login although there is one. `false` before the first request.
    pub async fn is_login_ignored(&self) -> bool {
        self.session.is_ignored().await
    }

    /// Carries out a transaction.
    ///
    /// # Errors
    /// The status that the request failed with. With some of them it may have been carried out.
    pub async fn txn(&self, txn: &TxnRequest) -> Result<TxnResponse, Status> {
        let answer_max = self.answer_max;
        self.ask(txn, |channel, request| async move {
            KvClient::new(channel).max_decoding_message_size(answer_max).txn(request).await
        })
        .await
    }

    /// Grants a lease for so many seconds, and gives its ID.
    ///
    /// # Errors
    /// The status that the request failed with.
    pub async fn grant_lease(&self, ttl_seconds: i64) -> Result<i64, Status> {
        let asked = LeaseGrantRequest { ttl: ttl_seconds };
        let granted = self.ask(&asked, |channel, request| async move {
            LeaseClient::new(channel).lease_grant(request).await
        });
        Ok(granted.await?.id)
    }

    /// Gives a lease its whole time to live again.
    ///
    /// # Errors
    /// The status that the request failed with: `NotFound` if there is no such lease any more.
    pub async fn keep_lease_alive(&self, id: i64) -> Result<(), Status> {
        let asked = LeaseKeepAliveRequest { id };
        let kept = self.ask(&asked, |channel, request| async move {
            let (asking, asked) = mpsc::channel(1);
            let request = request.map(|one| {
                // There is room for it.
                let _ = asking.try_send(one);
                ReceiverStream::new(asked)
            });
            let mut answers =
                LeaseClient::new(channel).lease_keep_alive(request).await?.into_inner();
            let answer = answers.message().await?;
            // Not before: etcd's proxy takes the end of the requests for the end of the call.
            drop(asking);
            answer.map(Response::new).ok_or_else(|| Status::unavailable("no answer"))
        });
        match kept.await?.ttl {
            1.. => Ok(()),
            // As etcd puts it where it answers with a status.
            _ => Err(Status::not_found("etcdserver: requested lease not found")),
        }
    }

    /// Watches ranges of keys. All of them are watched when this returns: no later change is
    /// missed.
    ///
    /// # Errors
    /// The status that the request failed with, or that etcd's refusal of a range amounts to.
    pub async fn watch(&self, ranges: &[WatchCreateRequest]) -> Result<Watch, Status> {
        self.ask(&ranges, watch::start).await
    }

    /// What the member says of itself.
    ///
    /// # Errors
    /// The status that the request failed with.
    pub async fn status(&self) -> Result<StatusResponse, Status> {
        self.ask(&StatusRequest {}, |channel, request| async move {
            MaintenanceClient::new(channel).status(request).await
        })
        .await
    }

    /// How many members the cluster has.
    ///
    /// # Errors
    /// The status that the request failed with.
    pub async fn member_count(&self) -> Result<usize, Status> {
        let asked = MemberListRequest {};
        let listed = self.ask(&asked, |channel, request| async move {
            ClusterClient::new(channel).member_list(request).await
        });
        Ok(listed.await?.members.len())
    }

    /// Sends a message; once more after a new login, if etcd wants one. Nothing was done then.
    async fn ask<M, A, F, R>(&self, message: &M, send: F) -> Result<A, Status>
    where
        M: Clone,
        F: Fn(Channel, Request<M>) -> R,
        R: Future<Output = Result<Response<A>, Status>>,
    {
        let send =
            |token: Option<&Token>| send(self.channel.clone(), request(message.clone(), token));
        let token = self.session.token(&self.channel, None).await?;
        let answer = match send(token.as_ref()).await {
            Err(status) if self.session.is_wanted_by(&status) => {
                let token = self.session.token(&self.channel, token.as_ref()).await?;
                send(token.as_ref()).await
            }
            answer => answer,
        };
        answer.map(Response::into_inner)
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").finish_non_exhaustive()
    }
}
