//! Issuing by a server, over HTTP.

use frazil_id::Layout;
use frazil_wire::{Info, query_value};

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
        let reply = match &args.scope {
            None => server.ids(&format!("count={count}"))?,
            Some(scope) => server.ids(&format!("count={count}&scope={}", query_value(scope)))?,
        };
        Ok(Issue { ids: reply.ids, token: Some(reply.metadata.token) })
    })
}
