//! The login of a connection: made when it is first needed, and again when etcd asks for it.

use tokio::sync::Mutex;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::Channel;
use tonic::{Code, Request, Status};

use crate::config::Login;
use crate::proto::etcdserverpb::AuthenticateRequest;
use crate::proto::etcdserverpb::auth_client::AuthClient;

/// What etcd says when a request needs a new login. A token of before a change of users counts as
/// old, and none at all is a user without a name.
const LOGIN_WANTED: [&str; 3] = ["invalid auth token", "user name is empty", "auth store is old"];

/// What etcd says to a login when it asks nobody for one.
const LOGIN_IGNORED: &str = "authentication is not enabled";

/// The login of one connection.
#[derive(Debug)]
pub(crate) struct Session {
    login: Option<Login>,
    /// Locked while a login is under way, so that many requests at once make it once.
    token: Mutex<Option<Token>>,
}

/// What a login has brought.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Token {
    /// To be sent with every request.
    Granted(MetadataValue<Ascii>),
    /// Requests go without.
    NotWanted,
}

impl Session {
    pub(crate) fn new(login: Option<Login>) -> Self {
        Self { login, token: Mutex::default() }
    }

    /// The token to send, which the login that `refused` is of has not brought. `None`: there is
    /// nobody to log in.
    pub(crate) async fn token(
        &self,
        channel: &Channel,
        refused: Option<&Token>,
    ) -> Result<Option<Token>, Status> {
        let Some(login) = &self.login else { return Ok(None) };
        let mut token = self.token.lock().await;
        if token.is_none() || token.as_ref() == refused {
            *token = Some(log_in(channel, login).await?);
        }
        Ok(token.clone())
    }

    /// Whether a request that failed so would succeed after a login.
    pub(crate) fn is_wanted_by(&self, status: &Status) -> bool {
        self.login.is_some()
            && match status.code() {
                Code::Unauthenticated => true,
                Code::InvalidArgument => is_login_wanted(status.message()),
                _ => false,
            }
    }

    /// Whether etcd asked for no login although there is one.
    pub(crate) async fn is_ignored(&self) -> bool {
        *self.token.lock().await == Some(Token::NotWanted)
    }
}

/// Whether etcd says so that a request needs a new login.
pub(crate) fn is_login_wanted(message: &str) -> bool {
    LOGIN_WANTED.iter().any(|part| message.contains(part))
}

async fn log_in(channel: &Channel, login: &Login) -> Result<Token, Status> {
    let Login { user: name, password } = login.clone();
    let request = request(AuthenticateRequest { name, password }, None);
    match AuthClient::new(channel.clone()).authenticate(request).await {
        Ok(answer) => match answer.into_inner().token.parse() {
            Ok(token) => Ok(Token::Granted(token)),
            Err(_) => Err(Status::internal("the token of the login cannot be sent")),
        },
        Err(status) if status.message().contains(LOGIN_IGNORED) => Ok(Token::NotWanted),
        Err(status) => Err(status),
    }
}

/// A message as it is sent.
pub(crate) fn request<M>(message: M, token: Option<&Token>) -> Request<M> {
    let mut request = Request::new(message);
    // A member without a leader answers with an error instead of waiting for one.
    request.metadata_mut().insert("hasleader", MetadataValue::from_static("true"));
    if let Some(Token::Granted(token)) = token {
        request.metadata_mut().insert("token", token.clone());
    }
    request
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_login_that_is_there_is_made_again() {
        let login = Login { user: "app".into(), password: "open-sesame".into() };
        let (with, without) = (Session::new(Some(login)), Session::new(None));
        for wanted in [
            Status::unauthenticated("etcdserver: invalid auth token"),
            Status::invalid_argument("etcdserver: user name is empty"),
            Status::invalid_argument("etcdserver: revision of auth store is old"),
        ] {
            assert!(with.is_wanted_by(&wanted) && !without.is_wanted_by(&wanted), "{wanted}");
        }
        for other in [
            Status::invalid_argument("etcdserver: authentication failed, invalid user ID"),
            Status::permission_denied("etcdserver: permission denied"),
            Status::unavailable("etcdserver: no leader"),
        ] {
            assert!(!with.is_wanted_by(&other), "{other}");
        }
    }
}
