//! Issuing by a server, over HTTP.

use frazil_id::Layout;
use frazil_wire::{IdsReply, Info};

use super::{Issue, print};
use crate::args::NextArgs;
use crate::output::Failure;
use crate::remote::Server;

pub(super) fn run(args: &NextArgs, server: &str) -> Result<(), Failure> {
    let server = Server::new(server, &args.server)?;
    let info: Info = server.get("/v1/info")?;
    let layout: Layout = info.layout.text.parse().map_err(Failure::usage)?;
    let most = info.limits.max_count.max(1);
    print(args, &layout, |n| {
        let count = n.min(most);
        let reply: IdsReply = match &args.scope {
            None => server.post(&format!("/v1/ids?count={count}"))?,
            Some(scope) => {
                server.post(&format!("/v1/ids?count={count}&scope={}", encoded(scope)))?
            }
        };
        Ok(Issue { ids: reply.ids, token: Some(reply.metadata.token) })
    })
}

/// A text as it may stand in a query.
fn encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                encoded.push(char::from(byte));
            }
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_mean_something_in_a_query_is_encoded() {
        assert_eq!(encoded("orders-2.x_~"), "orders-2.x_~");
        assert_eq!(encoded("a b&c=%\u{e9}"), "a%20b%26c%3D%25%C3%A9");
    }
}
