//! The role of a node: serves until it is killed.
#![expect(clippy::print_stdout, reason = "the addresses are its answer")]

use std::net::SocketAddr;
use std::path::Path;

use frazil::coord::FirstUse;
use frazil_server::{App, Config, DeclaredScope, LaneCount, TlsFiles};

use crate::Outcome;

/// Connections that a node lets one client have where it is asked to: with some to spare beyond those
/// that are measured.
const MANY_CONNECTIONS: usize = 6000;

/// Serves as the words say: `lanes=4`, `layout=TEXT`, `keys=FILE`, `cert=FILE` and `key=FILE`, `many`
/// for thousands of connections from one client; each may be left out.
pub(crate) fn run(words: &[&str]) -> Outcome {
    let directory = tempfile::tempdir()?;
    let mut config = config(directory.path())?;
    config.lanes = LaneCount::Fixed(1);
    let (mut cert, mut key) = (None::<&str>, None::<&str>);
    for word in words {
        match word.split_once('=').unwrap_or((word, "")) {
            ("lanes", count) => config.lanes = LaneCount::Fixed(count.parse()?),
            ("layout", text) => config.node = config.node.layout(text.parse()?),
            ("keys", file) => config.keys = Some(std::path::PathBuf::from(file).into()),
            ("cert", file) => cert = Some(file),
            ("key", file) => key = Some(file),
            ("many", _) => config.limits.max_connections_per_peer = MANY_CONNECTIONS,
            _ => return Err(format!("a node knows nothing of {word}").into()),
        }
    }
    config.tls = cert.zip(key).map(|(cert, key)| TlsFiles::new(cert, key));
    serve(config)
}

/// One of several nodes with a strict scope.
pub(crate) fn run_scoped(directory: &str, name: &str) -> Outcome {
    let scopes = vec![DeclaredScope::strict("orders")];
    let mut config = config(Path::new(directory))?;
    config.name = name.to_owned();
    config.scopes = scopes;
    serve(config)
}

fn config(directory: &Path) -> Result<Config, Box<dyn std::error::Error>> {
    let free = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
    let store = format!("file:{}", directory.display());
    // As `frazil serve --dev` does: nobody else can have used the directory.
    let node = frazil::Node::builder().store(&store).first_use(FirstUse::AtOnce);
    let mut config = Config::default();
    config.node = node;
    (config.http, config.grpc, config.resp) = (free, free, free);
    Ok(config)
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
