//! The role of a node: serves until it is killed.
#![expect(clippy::print_stdout, reason = "the addresses are its answer")]

use std::net::SocketAddr;

use frazil_server::{App, Config, LaneCount};

use crate::Outcome;

pub(crate) fn run(lanes: usize) -> Outcome {
    // As `frazil serve` does.
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let directory = tempfile::tempdir()?;
        let free = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
        let store = format!("file:{}", directory.path().display());
        let config = Config {
            node: frazil::Node::builder().store(&store)?,
            http: free,
            grpc: free,
            resp: free,
            lanes: LaneCount::Fixed(lanes),
            ..Config::default()
        };
        let app = App::bind(config).await?;
        let (addrs, mut condition) = (app.addrs(), app.condition());
        let running = tokio::spawn(app.run(std::future::pending()));
        condition.wait_for(|condition| condition.state.is_ready()).await?;
        let all = [addrs.http, addrs.grpc, addrs.resp];
        let all: Vec<String> = all.into_iter().flatten().map(|a| a.to_string()).collect();
        println!("{}", all.join(" "));
        running.await??;
        Ok(())
    })
}
