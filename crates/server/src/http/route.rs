//! The paths.

use hyper::Method as HttpMethod;

use crate::metrics::Method;

/// What a path leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Route {
    Ids,
    DecodeOne,
    DecodeMany,
    Encode,
    Info,
    Cluster,
    Live,
    Ready,
    Metrics,
    OpenApi,
}

/// Where one Id is taken apart.
pub(super) const ONE_ID: &str = "/v1/ids/";

impl Route {
    pub(super) fn find(path: &str) -> Option<Self> {
        match path {
            "/v1/ids" | "/ids" => Some(Self::Ids),
            "/v1/ids:decode" => Some(Self::DecodeMany),
            "/v1/ids:encode" => Some(Self::Encode),
            "/v1/info" => Some(Self::Info),
            "/v1/cluster" => Some(Self::Cluster),
            "/livez" => Some(Self::Live),
            "/readyz" => Some(Self::Ready),
            "/metrics" => Some(Self::Metrics),
            "/openapi.json" => Some(Self::OpenApi),
            _ => {
                let id = path.strip_prefix(ONE_ID)?;
                (!id.is_empty() && !id.contains('/')).then_some(Self::DecodeOne)
            }
        }
    }

    /// Whether the path has a method.
    pub(super) fn has(self, method: &HttpMethod) -> bool {
        match self {
            Self::Ids | Self::DecodeMany | Self::Encode => method == HttpMethod::POST,
            _ => method == HttpMethod::GET || method == HttpMethod::HEAD,
        }
    }

    /// Its methods, as a header lists them.
    pub(super) const fn allow(self) -> &'static str {
        match self {
            Self::Ids | Self::DecodeMany | Self::Encode => "POST",
            _ => "GET, HEAD",
        }
    }

    /// What it is about, for the metrics.
    pub(super) const fn method(self) -> Method {
        match self {
            Self::Ids => Method::Next,
            Self::DecodeOne | Self::DecodeMany => Method::Decode,
            Self::Encode => Method::Encode,
            Self::Info => Method::Info,
            Self::Cluster => Method::Cluster,
            Self::Live | Self::Ready | Self::Metrics | Self::OpenApi => Method::Other,
        }
    }
}
