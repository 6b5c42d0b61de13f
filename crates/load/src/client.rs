//! One connection in any of the protocols.

use frazil_id::Layout;

use crate::book::Book;
use crate::fault::Fault;
use crate::grpc::{Next, Stream};
use crate::http::Http;
use crate::plan::{Call, Plan};
use crate::resp::Resp;

/// A connection that asks for IDs.
pub(crate) enum Client {
    Http(Http),
    Next(Next),
    Stream(Box<Stream>),
    Resp(Resp),
}

/// What a server says about itself.
#[derive(Clone, Debug)]
pub(crate) struct Facts {
    pub(crate) version: String,
    pub(crate) node: String,
    pub(crate) layout: Layout,
    pub(crate) max_count: u64,
    /// Whether the scope that is asked for has IDs that increase across the cluster.
    pub(crate) is_strict: bool,
}

impl Client {
    pub(crate) async fn open(plan: &Plan) -> Result<Self, Fault> {
        Ok(match plan.call {
            Call::Http(accept) => Self::Http(Http::open(plan, accept).await?),
            Call::Next => Self::Next(Next::open(plan).await?),
            Call::Stream(depth) => Self::Stream(Box::new(Stream::open(plan, depth).await?)),
            Call::Resp(depth) => Self::Resp(Resp::open(plan, depth).await?),
        })
    }

    /// What the server says about itself.
    pub(crate) async fn facts(&mut self) -> Result<Facts, Fault> {
        match self {
            Self::Http(http) => http.facts().await,
            Self::Next(next) => next.facts().await,
            Self::Stream(stream) => stream.facts().await,
            Self::Resp(resp) => resp.facts().await,
        }
    }

    /// Sends what is to be sent together, and writes the answers into the book. What the server
    /// refuses is an entry too; an error is the end of the connection.
    pub(crate) async fn round(&mut self, book: &mut Book) -> Result<(), Fault> {
        match self {
            Self::Http(http) => http.round(book).await,
            Self::Next(next) => next.round(book).await,
            Self::Stream(stream) => stream.round(book).await,
            Self::Resp(resp) => resp.round(book).await,
        }
    }

    /// Whether the server has said that this connection was for one answer.
    pub(crate) const fn is_over(&self) -> bool {
        matches!(self, Self::Http(http) if http.is_over())
    }
}

/// A layout as a server writes it.
pub(crate) fn layout(text: &str) -> Result<Layout, Fault> {
    text.parse().map_err(|error| Fault::stranger(format_args!("its layout is unknown: {error}")))
}

/// Why a connection is gone.
#[expect(clippy::needless_pass_by_value, reason = "it is what map_err has")]
pub(crate) fn lost(error: std::io::Error) -> Fault {
    Fault::Lost(error.to_string())
}
