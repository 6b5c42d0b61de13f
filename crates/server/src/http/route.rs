//! The paths: the one table that requests are routed by.

use hyper::Method as HttpMethod;

use crate::metrics::Method;
use crate::policy::access::Permission;

/// What a path leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Route {
    Index,
    Ids,
    DecodeOne,
    DecodeMany,
    Encode,
    Info,
    Cluster,
    Elections,
    Election,
    Drain,
    Rotate,
    Release,
    Live,
    Ready,
    Metrics,
    OpenApi,
}

/// Every path; the name in braces stands for what differs from request to request.
const TABLE: [(&str, Route); 17] = [
    ("/", Route::Index),
    ("/v1/ids", Route::Ids),
    ("/ids", Route::Ids),
    ("/v1/ids:decode", Route::DecodeMany),
    ("/v1/ids:encode", Route::Encode),
    ("/v1/info", Route::Info),
    ("/v1/cluster", Route::Cluster),
    ("/v1/elections", Route::Elections),
    ("/v1/node:drain", Route::Drain),
    ("/v1/node:rotate", Route::Rotate),
    ("/livez", Route::Live),
    ("/readyz", Route::Ready),
    ("/metrics", Route::Metrics),
    ("/openapi.json", Route::OpenApi),
    ("/v1/ids/{id}", Route::DecodeOne),
    ("/v1/elections/{name}", Route::Election),
    ("/v1/workers/{worker}:release", Route::Release),
];

/// Every path with its method, and what it needs.
pub(crate) fn table() -> impl Iterator<Item = (String, Permission)> {
    TABLE.iter().map(|(path, route)| {
        let method = if route.is_post() { "POST" } else { "GET" };
        (format!("{method} {path}"), route.permission())
    })
}

impl Route {
    /// Where a path leads, and what stands for the name in braces.
    pub(super) fn find(path: &str) -> Option<(Self, &str)> {
        TABLE.iter().find_map(|(pattern, route)| Some((*route, matched(pattern, path)?)))
    }

    /// Whether the path has a method.
    pub(super) fn has(self, method: &HttpMethod) -> bool {
        if self.is_post() {
            return method == HttpMethod::POST;
        }
        method == HttpMethod::GET || method == HttpMethod::HEAD
    }

    /// Its methods, as a header lists them.
    pub(super) const fn allow(self) -> &'static str {
        if self.is_post() { "POST" } else { "GET, HEAD" }
    }

    /// Whether it changes something, or costs more than a look.
    pub(super) const fn is_post(self) -> bool {
        matches!(
            self,
            Self::Ids
                | Self::DecodeMany
                | Self::Encode
                | Self::Drain
                | Self::Rotate
                | Self::Release
        )
    }

    /// What it needs once there are keys.
    pub(super) const fn permission(self) -> Permission {
        match self {
            Self::Ids => Permission::Ids,
            Self::DecodeOne | Self::DecodeMany | Self::Encode | Self::Info | Self::Cluster => {
                Permission::AnyKey
            }
            Self::Elections | Self::Election | Self::Metrics => Permission::Read,
            Self::Drain | Self::Rotate | Self::Release => Permission::Admin,
            Self::Index | Self::Live | Self::Ready | Self::OpenApi => Permission::Nothing,
        }
    }

    /// What must be answered even when the node is full: whoever watches it asks for these.
    pub(super) const fn is_for_watchers(self) -> bool {
        matches!(self, Self::Live | Self::Ready | Self::Metrics)
    }

    /// What it is about, for the metrics.
    pub(super) const fn method(self) -> Method {
        match self {
            Self::Ids => Method::Next,
            Self::DecodeOne | Self::DecodeMany => Method::Decode,
            Self::Encode => Method::Encode,
            Self::Info => Method::Info,
            Self::Cluster => Method::Cluster,
            Self::Elections | Self::Election => Method::Elections,
            Self::Drain | Self::Rotate | Self::Release => Method::Admin,
            Self::Index | Self::Live | Self::Ready | Self::Metrics | Self::OpenApi => Method::Other,
        }
    }
}

/// What stands in the braces of a pattern, or nothing if it has none; `None` for another path.
fn matched<'a>(pattern: &str, path: &'a str) -> Option<&'a str> {
    let Some((before, rest)) = pattern.split_once('{') else {
        return (pattern == path).then_some("");
    };
    let (_, after) = rest.split_once('}')?;
    let name = path.strip_prefix(before)?.strip_suffix(after)?;
    (!name.is_empty() && !name.contains('/')).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lead_where_the_table_says() {
        for (path, expected) in [
            ("/", Some((Route::Index, ""))),
            ("/v1/ids", Some((Route::Ids, ""))),
            ("/v1/ids:decode", Some((Route::DecodeMany, ""))),
            ("/v1/ids/17", Some((Route::DecodeOne, "17"))),
            ("/v1/workers/7:release", Some((Route::Release, "7"))),
            ("/v1/workers/:release", None),
            ("/v1/workers/7/8:release", None),
            ("/v1/ids/", None),
            ("/v1/ids/1/2", None),
            ("/v1", None),
            ("", None),
        ] {
            assert_eq!(Route::find(path), expected, "{path}");
        }
    }
}
