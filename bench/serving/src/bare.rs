//! The roles of the baselines: handlers that answer a constant and do nothing else.
#![expect(clippy::print_stdout, reason = "the addresses are their answer")]

mod grpc;
mod http;
mod lines;

use tokio::net::TcpListener;

use crate::Outcome;

/// Serves HTTP with hyper, gRPC with tonic and lines with tokio, on addresses in the order of a node's,
/// all on one runtime over all cores. With the files of a certificate HTTP has TLS.
pub(crate) fn run(words: &[&str]) -> Outcome {
    let tls = match words {
        [] => None,
        [cert, key] => Some(http::acceptor(cert, key)?),
        _ => return Err("a bare handler takes a certificate and its key".into()),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let bind = || TcpListener::bind("127.0.0.1:0");
        let (web, calls, lines) = (bind().await?, bind().await?, bind().await?);
        println!("{} {} {}", web.local_addr()?, calls.local_addr()?, lines.local_addr()?);
        tokio::try_join!(http::serve(web, tls), grpc::serve(calls), lines::serve(lines))?;
        Ok(())
    })
}
