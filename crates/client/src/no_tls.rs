//! The stand-in for TLS in a build without it.

use std::io;
use std::path::Path;

use tokio::net::TcpStream;

use crate::builder::Identity;
use crate::endpoint::Endpoint;
use crate::error::Error;
use crate::link::Stream;

/// Nobody.
#[derive(Clone, Debug)]
pub(crate) struct Trust;

impl Trust {
    pub(crate) fn new(_ca: Option<&Path>, _identity: Option<&Identity>) -> Result<Self, Error> {
        Err(Error::invalid("TLS needs the feature `tls` of frazil-client"))
    }

    #[expect(clippy::unused_async, reason = "as with TLS")]
    pub(crate) async fn wrap(&self, _: &Endpoint, _: TcpStream) -> io::Result<Stream> {
        Err(io::Error::other("built without TLS"))
    }
}
