//! Bare hyper.

use std::convert::Infallible;
use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::Outcome;

/// What follows the IDs in an answer of a node.
const METADATA: &str = "\"metadata\":{\"node\":\"vm:12345\",\
    \"worker\":905,\"token\":\"1794757081727\",\"layout\":\"time:41 worker:10 sequence:12 \
    @2024-01-01T00:00:00Z tick:1ms\",\"region\":null,\"scope\":null,\
    \"first_time\":\"2026-11-15T15:38:03.262Z\",\"last_time\":\"2026-11-15T15:38:03.262Z\"}}";
const ID: &str = "\"380380940129046528\"";

/// Answers as long as those of a node: to one ID, to a batch of 100 and to a binary one of 1,000.
static ONE: LazyLock<Bytes> = LazyLock::new(|| json(1));
static HUNDRED: LazyLock<Bytes> = LazyLock::new(|| json(100));
static THOUSAND: LazyLock<Bytes> = LazyLock::new(|| vec![7; 8 * 1000].into());

fn json(count: usize) -> Bytes {
    let ids = vec![ID; count].join(",");
    format!("{{\"ids\":[{ids}],\"count\":{count},{METADATA}").into()
}

/// Speaks TLS with this certificate, as a node does.
pub(super) fn acceptor(cert: &str, key: &str) -> Result<TlsAcceptor, Box<dyn std::error::Error>> {
    let chain = CertificateDer::pem_file_iter(cert)?.collect::<Result<Vec<_>, _>>()?;
    let key = PrivateKeyDer::from_pem_file(key)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder =
        ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    let mut config = builder.with_no_client_auth().with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config).into())
}

pub(super) async fn serve(listener: TcpListener, tls: Option<TlsAcceptor>) -> Outcome {
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let tls = tls.clone();
        tokio::spawn(async move {
            match tls {
                None => connection(stream).await,
                Some(tls) => {
                    if let Ok(stream) = tls.accept(stream).await {
                        connection(stream).await;
                    }
                }
            }
        });
    }
}

async fn connection(stream: impl AsyncRead + AsyncWrite + Unpin) {
    let service = service_fn(answer);
    // Clients come and go.
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

async fn answer(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let body = match request.uri().query() {
        Some("count=100") => &HUNDRED,
        Some("count=1000") => &THOUSAND,
        _ => &ONE,
    };
    Ok(Response::new(Full::new(Bytes::clone(body))))
}
