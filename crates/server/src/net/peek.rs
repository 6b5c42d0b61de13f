//! The first bytes of a connection, read without taking them: until they are worth a parser and its
//! buffers they stay with the system, so that a client that never sends the rest costs a task.

use std::cell::RefCell;
use std::io::{self, ErrorKind};

use rustix::net::{RecvFlags, recv};
use tokio::io::Interest;
use tokio::net::TcpStream;

/// Bytes that are left with the system at most: its buffers must have room for more, or no more
/// would come.
const BYTES_MAX: usize = 32 * 1024;

thread_local! {
    /// Where a thread looks at bytes. They stay with the system, so one connection after the other
    /// can use it.
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Waits until `is_enough` says so of the bytes that have arrived, there are `most` of them, or the
/// client sends no more. Nothing is read: whoever serves the connection finds all of them.
///
/// # Errors
/// If the connection is broken.
pub(crate) async fn peek_until(
    stream: &TcpStream,
    most: usize,
    mut is_enough: impl FnMut(&[u8]) -> bool,
) -> io::Result<()> {
    let most = most.min(BYTES_MAX);
    loop {
        // What is closed stays ready for ever: there is nothing more to wait for.
        if stream.ready(Interest::READABLE).await?.is_read_closed() {
            return Ok(());
        }
        let looked = stream.try_io(Interest::READABLE, || {
            // As if there were nothing to read: it makes the next wait one for more bytes.
            look(stream, most, &mut is_enough)?.then_some(()).ok_or(ErrorKind::WouldBlock.into())
        });
        match looked {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            looked => return looked,
        }
    }
}

fn look(
    stream: &TcpStream,
    most: usize,
    is_enough: &mut impl FnMut(&[u8]) -> bool,
) -> io::Result<bool> {
    BUFFER.with_borrow_mut(|buffer| {
        buffer.resize(most, 0);
        let (_, seen) = recv(stream, buffer.as_mut_slice(), RecvFlags::PEEK)?;
        Ok(seen == 0 || seen == most || is_enough(&buffer[..seen]))
    })
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    async fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        (client, listener.accept().await.unwrap().0)
    }

    #[tokio::test]
    async fn bytes_are_waited_for_and_not_taken() {
        let (mut client, mut server) = pair().await;
        let mut seen = Vec::new();
        for piece in [b"one ", b"two ", b"end."] {
            client.write_all(piece).await.unwrap();
            // Each piece wakes it, though none was taken.
            let looking = peek_until(&server, 100, |bytes| {
                let is_new = bytes.len() > seen.len();
                seen = bytes.to_vec();
                is_new
            });
            looking.await.unwrap();
        }
        assert_eq!(seen, b"one two end.");
        let mut read = [0; 12];
        server.read_exact(&mut read).await.unwrap();
        assert_eq!(&read, b"one two end.");
    }

    #[tokio::test]
    async fn nothing_is_waited_for_beyond_the_most_or_the_end() {
        let (mut client, server) = pair().await;
        client.write_all(b"four").await.unwrap();
        peek_until(&server, 4, |_| false).await.unwrap();
        // Polled once, to wait for more; then the client ends.
        let mut waiting = Box::pin(peek_until(&server, 5, |_| false));
        tokio::select! {
            biased;
            _ = &mut waiting => panic!("there are no five"),
            () = std::future::ready(()) => {}
        }
        drop(client);
        waiting.await.unwrap();
    }
}
