//! A session: who it is, the state that a client is in with it, and its times.

use std::fmt;
use std::time::Duration;

use crate::error::Error;
use crate::jute::{Decoder, Encoder};

/// A session, with the password by which a client can go on with it. `Debug` does not show that.
#[derive(Clone)]
pub struct Session {
    id: SessionId,
    password: Vec<u8>,
}

/// The number of a session.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SessionId(pub i64);

/// The state that a client is in with its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum State {
    /// Requests are answered.
    Connected,
    /// The client looks for a server that goes on with the session.
    Disconnected,
    /// The session is over. This and what follows is final.
    Expired,
    /// The login was not accepted.
    AuthFailed,
    /// The client has ended.
    Closed,
}

/// The times of a session, as far as they follow from its time-out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Timing {
    /// How long it lasts without a sign of life.
    pub(crate) session: Duration,
    /// How long a server may be silent.
    pub(crate) silence: Duration,
    /// How long nothing is sent before a ping is: early enough for the answer to end the silence.
    pub(crate) ping: Duration,
}

/// What a server grants to who connects.
pub(crate) struct Grant {
    pub(crate) session: Session,
    pub(crate) timeout: Duration,
}

impl Session {
    /// The number.
    #[must_use]
    pub const fn id(&self) -> SessionId {
        self.id
    }
}

impl State {
    /// Whether no other follows.
    #[must_use]
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Expired | Self::AuthFailed | Self::Closed)
    }

    /// Why a request in this state is not answered.
    pub(crate) const fn error(self) -> Error {
        match self {
            Self::Expired => Error::SessionExpired,
            Self::AuthFailed => Error::AuthFailed,
            Self::Connected | Self::Disconnected | Self::Closed => Error::Closed,
        }
    }
}

/// No ping is later than this.
const PING_MAX: Duration = Duration::from_secs(10);

impl Timing {
    pub(crate) fn new(session: Duration, silence_max: Duration) -> Self {
        // At least two servers can be tried while the session lasts.
        let silence = if silence_max > session * 3 / 5 { session * 2 / 5 } else { silence_max };
        let silence = silence.max(Duration::from_millis(10));
        Self { session, silence, ping: PING_MAX.min(silence * 3 / 8) }
    }

    /// After how long without a sign of life the client takes the session for expired, if nobody
    /// tells: late enough for the servers to have done so.
    pub(crate) fn given_up_after(&self) -> Duration {
        self.session * 7 / 5
    }
}

/// The first message of a connection: asks for a session, or to go on with one in whose connection
/// before the last transaction was `zxid`.
pub(crate) fn connect_request(session: Option<&Session>, timeout: Duration, zxid: i64) -> Vec<u8> {
    /// Of a session that there is not yet.
    const NO_PASSWORD: [u8; 16] = [0; 16];
    let timeout_ms = i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX);
    let id = session.map_or(0, |session| session.id.0);
    let password = session.map_or(&NO_PASSWORD[..], |session| &session.password);
    let mut request = Encoder::default();
    // A server that only reads is of no use.
    request.int(0).long(zxid).int(timeout_ms).long(id).bytes(password).bool(false);
    request.into_bytes()
}

impl Grant {
    pub(crate) fn decode(answer: &[u8]) -> Result<Self, Error> {
        let mut answer = Decoder::new(answer);
        let version = answer.int()?;
        let timeout_ms = answer.int()?;
        let id = SessionId(answer.long()?);
        let password = answer.bytes()?.to_vec();
        // Servers before 3.4 do not say whether they only read.
        let reads_only = !answer.rest().is_empty() && answer.bool()?;
        if version != 0 {
            return Err(Error::Malformed("the protocol has another version"));
        }
        if id.0 == 0 || timeout_ms <= 0 {
            return Err(Error::SessionExpired);
        }
        if reads_only {
            return Err(Error::NotReadOnly);
        }
        let timeout = Duration::from_millis(u64::from(timeout_ms.unsigned_abs()));
        Ok(Self { session: Session { id, password }, timeout })
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("id", &self.id).finish_non_exhaustive()
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

impl fmt::Debug for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(version: i32, timeout: i32, id: i64, tail: &[u8]) -> Vec<u8> {
        let mut answer = Encoder::default();
        answer.int(version).int(timeout).long(id).bytes(b"sesame");
        [answer.into_bytes(), tail.to_vec()].concat()
    }

    #[test]
    fn a_grant_is_read_and_what_grants_nothing_is_not_one() {
        let grant = Grant::decode(&answer(0, 4000, 7, &[0])).unwrap();
        assert_eq!((grant.session.id, grant.timeout), (SessionId(7), Duration::from_secs(4)));
        assert!(!format!("{:?}", grant.session).contains("sesame"));
        assert!(Grant::decode(&answer(0, 4000, 7, &[])).is_ok());
        let refused = |answer: &[u8]| Grant::decode(answer).err().unwrap();
        assert!(matches!(refused(&answer(0, 0, 0, &[0])), Error::SessionExpired));
        assert!(matches!(refused(&answer(0, -1, 7, &[0])), Error::SessionExpired));
        assert!(matches!(refused(&answer(0, 4000, 7, &[1])), Error::NotReadOnly));
        assert!(matches!(refused(&answer(9, 4000, 7, &[0])), Error::Malformed(_)));
        let whole = answer(0, 4000, 7, &[]);
        for length in 0..whole.len() {
            assert!(matches!(refused(&whole[..length]), Error::Malformed(_)), "{length}");
        }
    }

    #[test]
    fn a_silent_server_is_given_up_while_another_can_still_be_tried() {
        let second = Duration::from_secs(1);
        let long = Timing::new(30 * second, 5 * second);
        assert_eq!((long.silence, long.ping), (5 * second, second * 15 / 8));
        let short = Timing::new(second, 5 * second);
        assert_eq!((short.silence, short.ping), (second * 2 / 5, second * 3 / 20));
        assert!(Timing::new(Duration::ZERO, second).ping > Duration::ZERO);
    }
}
