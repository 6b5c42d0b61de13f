//! The PROXY protocol, version 2: what a proxy sends before the client's own bytes.

use std::io::{self, ErrorKind};
use std::net::IpAddr;
use std::time::Duration;

use proxy_header::{ParseConfig, ProxyHeader};
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

/// The first byte of the header. No protocol that is served here begins with it.
const FIRST: u8 = b'\r';
/// Bytes up to and with the length of the rest.
const FIXED_BYTES: usize = 16;
/// Bytes of the rest: two addresses take up to 216, what proxies add a few hundred.
const REST_BYTES_MAX: usize = 2048;

/// Reads whom a proxy speaks for; nothing is read if it begins without a header, or says nothing
/// at all for so long. `None`: it speaks for itself, or does not say for whom.
///
/// # Errors
/// If the header makes no sense, is too long, or does not come in time.
pub(crate) async fn read_proxy_header(
    stream: &mut TcpStream,
    limit: Duration,
) -> io::Result<Option<IpAddr>> {
    let deadline = tokio::time::Instant::now() + limit;
    let mut first = [0];
    // A pool of connections may be silent at first; a header is sent at once.
    let Ok(seen) = tokio::time::timeout_at(deadline, stream.peek(&mut first)).await else {
        return Ok(None);
    };
    if seen? == 0 || first != [FIRST] {
        return Ok(None);
    }
    let reading = tokio::time::timeout_at(deadline, header(stream));
    let bytes = reading.await.unwrap_or_else(|_| Err(ErrorKind::TimedOut.into()))?;
    address(&bytes).ok_or_else(|| io::Error::new(ErrorKind::InvalidData, "no PROXY header"))
}

/// The bytes of a header, and not one more.
async fn header(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; FIXED_BYTES];
    stream.read_exact(&mut bytes).await?;
    let rest = usize::from(u16::from_be_bytes([bytes[14], bytes[15]]));
    if rest > REST_BYTES_MAX {
        return Err(io::Error::new(ErrorKind::InvalidData, "the PROXY header is too long"));
    }
    bytes.resize(FIXED_BYTES + rest, 0);
    stream.read_exact(&mut bytes[FIXED_BYTES..]).await?;
    Ok(bytes)
}

/// The address in a header, if it has one; `None` if it is no header.
fn address(bytes: &[u8]) -> Option<Option<IpAddr>> {
    let config = ParseConfig { include_tlvs: false, allow_v1: false, allow_v2: true };
    let (header, used) = ProxyHeader::parse(bytes, config).ok()?;
    let source = header.proxied_address().map(|proxied| proxied.source.ip().to_canonical());
    (used == bytes.len()).then_some(source)
}

#[cfg(test)]
mod tests {
    use frazil_rig::Corpus;
    use proxy_header::ProxiedAddress;
    use tokio::io::AsyncWriteExt;
    use tokio::net::TcpListener;

    use super::*;

    const SOON: Duration = Duration::from_millis(50);
    const LATE: Duration = Duration::from_secs(60);

    fn of(source: &str) -> Vec<u8> {
        let proxied = ProxiedAddress::stream(source.parse().unwrap(), source.parse().unwrap());
        let mut bytes = Vec::new();
        ProxyHeader::with_address(proxied).encode_v2(&mut bytes).unwrap();
        bytes
    }

    fn local() -> Vec<u8> {
        let mut bytes = Vec::new();
        ProxyHeader::with_local().encode_v2(&mut bytes).unwrap();
        bytes
    }

    /// What is made of these bytes, and what is left of them.
    async fn after_proxy_header(
        bytes: &[u8],
        limit: Duration,
    ) -> (io::Result<Option<IpAddr>>, Vec<u8>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut sender = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (mut stream, _) = listener.accept().await.unwrap();
        sender.write_all(bytes).await.unwrap();
        let made = read_proxy_header(&mut stream, limit).await;
        drop(sender);
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest).await;
        (made, rest)
    }

    #[tokio::test]
    async fn a_header_is_read_and_nothing_behind_it() {
        for (header, expected) in [
            (of("192.0.2.7:1"), Some("192.0.2.7")),
            (of("[2001:db8::1]:1"), Some("2001:db8::1")),
            (of("[::ffff:192.0.2.7]:1"), Some("192.0.2.7")),
            (local(), None),
            (Vec::new(), None),
        ] {
            let (made, rest) =
                after_proxy_header(&[&header, &b"PING\r\n"[..]].concat(), LATE).await;
            assert_eq!(made.unwrap(), expected.map(|text| text.parse().unwrap()), "{header:?}");
            assert_eq!(rest, b"PING\r\n");
        }
    }

    #[tokio::test]
    async fn what_is_no_header_or_not_all_of_one_is_an_error() {
        let (whole, mut long) = (of("192.0.2.7:1"), of("192.0.2.7:1"));
        long[14] = 0xff;
        for (bytes, kind) in [
            (&b"\r\nGET / HTTP/1.1\r\n\r\n"[..], ErrorKind::InvalidData),
            (&long, ErrorKind::InvalidData),
            (&whole[..1], ErrorKind::TimedOut),
            (&whole[..FIXED_BYTES], ErrorKind::TimedOut),
            (&whole[..whole.len() - 1], ErrorKind::TimedOut),
        ] {
            let (made, _) = after_proxy_header(bytes, SOON).await;
            assert_eq!(made.unwrap_err().kind(), kind, "{bytes:?}");
        }
        // Silence is no header.
        assert_eq!(after_proxy_header(b"", SOON).await.0.unwrap(), None);
    }

    #[test]
    fn any_bytes_are_an_address_or_none() {
        let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus/proxy");
        let checked = Corpus::read(corpus).unwrap().check(20_000, |bytes| {
            let _ = address(bytes);
        });
        checked.unwrap_or_else(|broken| panic!("{broken}"));
    }
}
