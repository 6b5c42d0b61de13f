//! The role of a node: serves until it is killed.
#![expect(clippy::print_stdout, reason = "the addresses are its answer")]

use std::net::SocketAddr;
use std::path::Path;

use frazil_server::{App, Config, DeclaredScope, LaneCount};

use crate::Outcome;

pub(crate) fn run(lanes: usize) -> Outcome {
    let directory = tempfile::tempdir()?;
    serve(Config { lanes: LaneCount::Fixed(lanes), ..config(directory.path())? })
}

/// One of several nodes with a strict scope.
pub(crate) fn run_scoped(directory: &str, name: &str) -> Outcome {
    let scopes = vec![DeclaredScope::strict("orders")];
    serve(Config { name: name.to_owned(), scopes, ..config(Path::new(directory))? })
}

fn config(directory: &Path) -> Result<Config, Box<dyn std::error::Error>> {
    let free = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
    let store = format!("file:{}", directory.display());
    let node = frazil::Node::builder().store(&store)?;
    Ok(Config { node, http: free, grpc: free, resp: free, ..Config::default() })
}

fn serve(config: Config) -> Outcome {
    // As `frazil serve` does.
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
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
