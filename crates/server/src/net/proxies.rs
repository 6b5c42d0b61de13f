//! Proxies that are trusted to say for whom they speak: by the PROXY protocol for a connection, by
//! a header for a request. Nobody else is believed.

mod forwarded;
mod proxy_protocol;

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use frazil_wire::ApiError;
use hyper::HeaderMap;
use ipnet::IpNet;

pub(crate) use self::proxy_protocol::read_proxy_header;

/// Addresses with a common beginning, as `10.0.0.0/8`; one address is a range too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressRange(IpNet);

/// The addresses of trusted proxies.
#[derive(Clone, Debug, Default)]
pub(crate) struct TrustedProxies(Vec<AddressRange>);

impl TrustedProxies {
    pub(crate) const fn new(ranges: Vec<AddressRange>) -> Self {
        Self(ranges)
    }

    /// Whether whoever has that address is one of them.
    pub(crate) fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.0.iter().any(|range| range.0.contains(&address))
    }

    /// The address that a request of a trusted proxy is from, if its headers say.
    ///
    /// # Errors
    /// If they make no sense.
    pub(crate) fn client(&self, headers: &HeaderMap) -> Result<Option<IpAddr>, ApiError> {
        forwarded::client(headers, |address| self.contains(address))
    }
}

impl FromStr for AddressRange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let one = text.parse().ok().map(|address: IpAddr| IpNet::from(address.to_canonical()));
        let range = one.or_else(|| text.parse().ok()).ok_or_else(|| {
            format!(
                "{text:?} is no range of addresses: write 10.0.0.0/8, 2001:db8::/32 or 10.0.0.7"
            )
        })?;
        if range.prefix_len() == 0 {
            return Err(format!("{text} trusts everybody: name the addresses of the proxies"));
        }
        Ok(Self(range))
    }
}

/// Displays as it is read.
impl fmt::Display for AddressRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_hold_their_addresses_and_no_others() {
        let ranges = ["10.1.0.0/16", "192.0.2.7", "2001:db8::/32"];
        let proxies = TrustedProxies::new(ranges.map(|text| text.parse().unwrap()).to_vec());
        for (address, is_trusted) in [
            ("10.1.255.255", true),
            ("10.2.0.0", false),
            ("::ffff:10.1.0.1", true),
            ("192.0.2.7", true),
            ("192.0.2.8", false),
            ("2001:db8:1::1", true),
            ("2001:db9::", false),
        ] {
            assert_eq!(proxies.contains(address.parse().unwrap()), is_trusted, "{address}");
        }
        assert!(!TrustedProxies::default().contains("127.0.0.1".parse().unwrap()));
    }

    #[test]
    fn what_is_no_range_or_everybody_is_refused() {
        for text in ["", "10.0.0.0/33", "10.0.0", "proxy", "0.0.0.0/0", "::/0", "10.0.0.0/8,"] {
            assert!(text.parse::<AddressRange>().is_err(), "{text}");
        }
    }
}
