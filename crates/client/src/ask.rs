//! Questions that are not about IDs: what operators and tools ask a server.

use std::time::Duration;

use hyper::Method;

/// What to ask a server over HTTP, apart from IDs.
///
/// A `GET` is asked again within the budget for retries, as IDs are; a `POST` is not unless that is
/// allowed, because it may have been done although no answer came.
#[derive(Clone, Debug)]
#[must_use = "nothing is asked before it is given to Client::ask"]
pub struct Ask {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) within: Option<Duration>,
    pub(crate) is_repeatable: bool,
    pub(crate) takes_any_status: bool,
    pub(crate) needs_nonce: bool,
}

/// What a server answered.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Answer {
    /// The status; from 200 to 299 unless others were asked for.
    pub status: u16,
    /// The body, of at most a mebibyte.
    pub body: Vec<u8>,
}

impl Ask {
    /// Asks for something: a path with its query, such as `/v1/info`.
    pub fn get(path: impl Into<String>) -> Self {
        Self::new(Method::GET, path.into(), true)
    }

    /// Asks a server to do something, once.
    pub fn post(path: impl Into<String>) -> Self {
        Self::new(Method::POST, path.into(), false)
    }

    /// How long it may take, instead of the client's deadline.
    pub const fn within(mut self, limit: Duration) -> Self {
        self.within = Some(limit);
        self
    }

    /// Asks again if that may help: doing it twice does no harm.
    pub const fn repeatable(mut self) -> Self {
        self.is_repeatable = true;
        self
    }

    /// Refuses an answer that does not repeat the nonce of its request, as servers do where IDs are
    /// handed out. Elsewhere an answer without one is taken, and one with another is not.
    pub const fn with_nonce(mut self) -> Self {
        self.needs_nonce = true;
        self
    }

    /// Takes every status for an answer, instead of an error.
    pub const fn any_status(mut self) -> Self {
        self.takes_any_status = true;
        self
    }

    const fn new(method: Method, path: String, is_repeatable: bool) -> Self {
        Self {
            method,
            path,
            within: None,
            is_repeatable,
            takes_any_status: false,
            needs_nonce: false,
        }
    }
}
