//! The role of the baseline: a bare hyper handler that answers a constant body.
#![expect(clippy::print_stdout, reason = "the address is its answer")]

use std::convert::Infallible;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

use crate::Outcome;

/// As long as the answer of a node with one Id.
const BODY: &str = "{\"ids\":[\"380380940129046528\"],\"count\":1,\"metadata\":{\"node\":\"vm:12345\",\
    \"worker\":905,\"token\":\"1794757081727\",\"layout\":\"time:41 worker:10 sequence:12 \
    @2024-01-01T00:00:00Z tick:1ms\",\"region\":null,\"scope\":null,\
    \"first_time\":\"2026-11-15T15:38:03.262Z\",\"last_time\":\"2026-11-15T15:38:03.262Z\"}}";

pub(crate) fn run() -> Outcome {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        println!("{}", listener.local_addr()?);
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            tokio::spawn(async move {
                let service = service_fn(answer);
                let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
            });
        }
    })
}

async fn answer(_: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    Ok(Response::new(Full::new(Bytes::from_static(BODY.as_bytes()))))
}
