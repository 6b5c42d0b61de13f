//! The one error catalogue: every reason for which a request can fail, and what it is called in
//! each protocol.

use std::fmt;
use std::str::FromStr;

/// Declares the catalogue.
macro_rules! catalogue {
    ($($(#[doc = $meaning:literal])+ $reason:ident $name:literal $http:literal $grpc:literal $title:literal $help:literal)*) => {
        /// Why a request failed. The names are a contract.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum Reason {
            $($(#[doc = $meaning])+ $reason),*
        }

        impl Reason {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$reason),*];

            /// Its name, the same in every protocol.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$reason => $name),* }
            }

            /// The HTTP status.
            #[must_use]
            pub const fn http_status(self) -> u16 {
                match self { $(Self::$reason => $http),* }
            }

            /// The gRPC code.
            #[must_use]
            pub const fn grpc_code(self) -> i32 {
                match self { $(Self::$reason => $grpc),* }
            }

            /// The reason in a few words.
            #[must_use]
            pub const fn title(self) -> &'static str {
                match self { $(Self::$reason => $title),* }
            }

            /// What to do about it.
            #[must_use]
            pub const fn help(self) -> &'static str {
                match self { $(Self::$reason => $help),* }
            }
        }
    };
}

catalogue! {
    /// More IDs than are given out at once, or none.
    CountOutOfRange "COUNT_OUT_OF_RANGE" 400 3
        "The count is out of range"
        "Ask for 1 up to limits.max_count of /v1/info, and at most a second of the key's quota; for more, ask several times."
    /// Text that is no ID, or no ID of the layout.
    MalformedId "MALFORMED_ID" 400 3
        "That is not an ID"
        "Write the ID in decimal, as it was issued, and name its layout if it is not the node's."
    /// A layout's name or text that means nothing.
    UnknownLayout "UNKNOWN_LAYOUT" 400 3
        "The layout is unknown"
        "Name a preset, or write a layout's text as `frazil layout` prints it."
    /// A parameter that makes no sense.
    InvalidArgument "INVALID_ARGUMENT" 400 3
        "Invalid request"
        "Correct the request; the detail says what is wrong with it."
    /// No key, or none that is known.
    Unauthenticated "UNAUTHENTICATED" 401 16
        "A key is needed"
        "Send a key that the node knows."
    /// A key that may not do this.
    Forbidden "FORBIDDEN" 403 7
        "The key may not do this"
        "Use a key with the role and the scope that this needs."
    /// Nothing of that name.
    NotFound "NOT_FOUND" 404 5
        "Not found"
        "Check the path; a scope must be declared on the node, and a worker held by it."
    /// A path that does not have this method.
    MethodNotAllowed "METHOD_NOT_ALLOWED" 405 12
        "The path has no such method"
        "Use a method that the Allow header names."
    /// None of the answers' forms is accepted.
    NotAcceptable "NOT_ACCEPTABLE" 406 3
        "No such form of the answer"
        "Accept application/json, text/plain or application/octet-stream."
    /// A request larger than the limits.
    TooLarge "TOO_LARGE" 413 3
        "The request is too large"
        "Send less at once: the limits are in /v1/info."
    /// A path longer than the limits.
    UriTooLong "URI_TOO_LONG" 414 3
        "The path is too long"
        "Send less in the path's query."
    /// A body in a form that is not read.
    UnsupportedMediaType "UNSUPPORTED_MEDIA_TYPE" 415 3
        "The body's form is not read"
        "Send application/json."
    /// A head larger than the limits.
    HeadTooLarge "HEAD_TOO_LARGE" 431 3
        "The head is too large"
        "Send a shorter path and query, and fewer or shorter headers."
    /// A token that a later one has replaced.
    TokenStale "TOKEN_STALE" 409 10
        "The token is stale"
        "Somebody else was given a later token: stop, and read the state anew."
    /// Somebody else holds it.
    HeldByOther "HELD_BY_OTHER" 409 10
        "Somebody else holds it"
        "Wait until it is released, or ask its holder."
    /// More than the key's quota.
    QuotaExceeded "QUOTA_EXCEEDED" 429 8
        "The quota is used up"
        "Wait as long as retry_after_ms says, or have the key's quota raised."
    /// Too many wrong keys were shown from the address.
    TooManyAttempts "TOO_MANY_ATTEMPTS" 429 8
        "Too many wrong keys were shown"
        "Wait as long as retry_after_ms says, and send a key that the node knows."
    /// The node has no worker to issue with.
    NoWorker "NO_WORKER" 503 14
        "The node has no worker"
        "Ask another node, or wait; /readyz?verbose and `frazil workers ls` say what it waits for."
    /// Nobody leads the scope, or its leader cannot be reached.
    NoLeader "NO_LEADER" 503 14
        "The scope has no leader"
        "Wait as long as retry_after_ms says. If it stays so, see who leads in /v1/cluster and whether nodes reach it there."
    /// The lease could not be renewed in time.
    HorizonReached "HORIZON_REACHED" 503 14
        "The lease has ended"
        "Ask another node; this one issues again when its store is back."
    /// The clock was set back.
    ClockMovedBackwards "CLOCK_MOVED_BACKWARDS" 503 14
        "The clock went back"
        "Ask another node; this one issues again when its clock has caught up or is set right."
    /// The clock differs too much from those of others.
    ClockUntrusted "CLOCK_UNTRUSTED" 503 14
        "The clock is not trusted"
        "Ask another node, and set this machine's clock right."
    /// The namespace waits until nobody can be issuing by records that were lost.
    Quarantined "QUARANTINED" 503 14
        "The namespace is in quarantine"
        "Wait as long as retry_after_ms says: records were lost, or the namespace is new."
    /// The node is on its way out.
    Draining "DRAINING" 503 14
        "The node is shutting down"
        "Ask another node."
    /// More is asked for than can be issued.
    Overloaded "OVERLOADED" 503 14
        "The node is overloaded"
        "Ask another node, wait as long as retry_after_ms says, or run more nodes or lanes."
    /// The store does not answer, and the request needs it.
    StoreUnavailable "STORE_UNAVAILABLE" 503 14
        "The store does not answer"
        "Wait; issuing goes on meanwhile until the horizon."
    /// Not within the time that the request has.
    Deadline "DEADLINE" 504 4
        "Not in time"
        "Ask again, with more time or for fewer IDs."
    /// The layout has no ticks left.
    TimeExhausted "TIME_EXHAUSTED" 500 9
        "The layout's time is used up"
        "Move to a layout with more time bits."
    /// A fault of the node.
    Internal "INTERNAL" 500 13
        "The node has a fault"
        "Look at the node's log, and report it."
}

impl Reason {
    /// Whether the same request may succeed later, or elsewhere.
    #[must_use]
    pub const fn is_retryable(self) -> bool {
        matches!(self.http_status(), 429 | 503)
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A name that no reason has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnknownReason;

impl fmt::Display for UnknownReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no reason has that name")
    }
}

impl std::error::Error for UnknownReason {}

impl FromStr for Reason {
    type Err = UnknownReason;

    fn from_str(name: &str) -> Result<Self, UnknownReason> {
        Self::ALL.iter().find(|reason| reason.name() == name).copied().ok_or(UnknownReason)
    }
}
