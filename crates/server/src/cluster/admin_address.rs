//! The address at which a node is administered, as the records of its workers have it.

use std::collections::BTreeMap;
use std::net::IpAddr;

use crate::cluster::cache::{ADMIN, LISTEN};
use crate::cluster::scopes::ADVERTISE;

/// Where a node is administered, seen from a machine.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AdminAddress {
    /// It is reached from here.
    Here(String),
    /// It is reached from its own machine alone.
    OnlyFrom {
        /// The machine.
        host: String,
        /// The address there.
        url: String,
    },
}

impl AdminAddress {
    /// What a node says of itself (see `Record::info`): the listener of its own that administration has,
    /// else where clients are told to go, else where it listens; the first that is reached from
    /// `this_host`.
    #[must_use]
    pub fn of(info: &BTreeMap<String, String>, this_host: &str) -> Option<Self> {
        let host = info.get("host").map_or("", String::as_str);
        let urls = match info.get(ADMIN) {
            Some(admin) => vec![admin],
            None => [ADVERTISE, LISTEN].iter().filter_map(|name| info.get(*name)).collect(),
        };
        let is_reached = |url: &&&String| host == this_host || !is_loopback(url);
        match urls.iter().find(is_reached) {
            Some(url) => Some(Self::Here((*url).clone())),
            None => {
                urls.first().map(|url| Self::OnlyFrom { host: host.into(), url: (*url).clone() })
            }
        }
    }
}

/// Whether what is sent to a URL stays on this machine.
#[must_use]
pub fn is_loopback(base: &str) -> bool {
    let authority = base.split_once("://").map_or(base, |(_, rest)| rest);
    let authority = authority.split('/').next().unwrap_or_default();
    let host = authority.rsplit_once(':').map_or(authority, |(host, _)| host);
    let address = host.trim_matches(['[', ']']).parse::<IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_administered_where_it_says_and_on_loopback_from_its_own_machine_alone() {
        let here = |url: &str| Some(AdminAddress::Here(url.to_owned()));
        let only =
            |url: &str| Some(AdminAddress::OnlyFrom { host: "m1".into(), url: url.to_owned() });
        let (near, far, admin) = ("http://127.0.0.1:1", "http://n1.example:1", "http://[::1]:2");
        for (info, host, expected) in [
            (&[("listen", near)][..], "m1", here(near)),
            (&[("listen", near)], "m2", only(near)),
            (&[("listen", near), ("advertise", far)], "m2", here(far)),
            (&[("listen", near), ("advertise", near)], "m2", only(near)),
            (&[("listen", far), ("advertise", near)], "m2", here(far)),
            (&[("listen", near), ("advertise", far), ("admin", admin)], "m1", here(admin)),
            (&[("listen", near), ("advertise", far), ("admin", admin)], "m2", only(admin)),
            (&[], "m1", None),
        ] {
            let info = info.iter().copied().chain([("host", "m1")]);
            let info = info.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
            assert_eq!(AdminAddress::of(&info, host), expected, "{info:?} from {host}");
        }
    }

    #[test]
    fn only_this_machine_is_loopback() {
        for (base, expected) in [
            ("http://127.0.0.1:7780", true),
            ("http://localhost:1/x", true),
            ("http://[::1]:7780", true),
            ("http://10.0.0.7:7780", false),
            ("http://localhost.example", false),
        ] {
            assert_eq!(is_loopback(base), expected, "{base}");
        }
    }
}
