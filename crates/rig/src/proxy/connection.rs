//! One connection through the proxy: two directions, each with a reader and a writer.
//!
//! A reader stamps what arrives; a writer forwards it when its time has come. They are apart so
//! that bytes held back do not keep those behind them from arriving (and from being counted), and
//! so that a delay is a delay and not a lower throughput.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

use super::switchboard::{Action, Direction, Key, Switchboard};
use crate::waiting::now;

/// How much is read at a time; of no importance.
const CHUNK: usize = 16 * 1024;

/// How long the target may take to accept. It is on the loopback address: the kernel does it.
const CONNECT_LIMIT: Duration = Duration::from_secs(2);

/// Serves a client until the connection is closed by either side or by the proxy's owner.
pub(super) fn serve(client: TcpStream, board: &Switchboard) {
    let Some(key) = client.try_clone().ok().and_then(|copy| board.enter(copy)) else { return };
    // A connection that fails is closed; there is nobody else to tell.
    let _ = forward(&client, key, board);
    board.leave(key);
}

fn forward(client: &TcpStream, key: Key, board: &Switchboard) -> io::Result<()> {
    client.set_nodelay(true)?;
    // A black hole swallows also the connection itself.
    if board.judge(key, Direction::Up, now()) != Action::Forward {
        return Ok(());
    }
    let target = board.read(|state| state.target);
    let server = &TcpStream::connect_timeout(&target, CONNECT_LIMIT)?;
    server.set_nodelay(true)?;
    if !board.join(key, server.try_clone()?) {
        return Ok(());
    }
    let up = Pipe { from: client, to: server, direction: Direction::Up, key, board };
    let down = Pipe { from: server, to: client, direction: Direction::Down, key, board };
    thread::scope(|scope| {
        scope.spawn(|| up.run());
        down.run();
    });
    Ok(())
}

/// One direction of a connection.
struct Pipe<'a> {
    from: &'a TcpStream,
    to: &'a TcpStream,
    direction: Direction,
    key: Key,
    board: &'a Switchboard,
}

/// Bytes, or none for the end of the stream, and when they came.
struct Parcel {
    bytes: Vec<u8>,
    arrival: Instant,
}

impl Pipe<'_> {
    fn run(&self) {
        let (parcels, inbox) = mpsc::channel();
        thread::scope(|scope| {
            scope.spawn(move || self.read(&parcels));
            // A failed write means that the receiver is gone: the whole connection ends.
            if self.write(&inbox).is_err() {
                self.board.leave(self.key);
            }
        });
    }

    fn read(&self, parcels: &Sender<Parcel>) {
        let mut from = self.from;
        let mut buffer = vec![0; CHUNK];
        loop {
            // An error is the end of the stream, too: the receiver can not tell the difference.
            let length = from.read(&mut buffer).unwrap_or(0);
            if self.direction == Direction::Down {
                self.board.update(|state| state.bytes_answered += length as u64);
            }
            let parcel = Parcel { bytes: buffer[..length].to_vec(), arrival: now() };
            if parcels.send(parcel).is_err() || length == 0 {
                return;
            }
        }
    }

    fn write(&self, inbox: &Receiver<Parcel>) -> io::Result<()> {
        let mut to = self.to;
        for parcel in inbox {
            match self.board.judge(self.key, self.direction, parcel.arrival) {
                Action::Close => return Ok(()),
                Action::Drop => {
                    self.board.update(|state| state.bytes_dropped += parcel.bytes.len() as u64);
                }
                Action::Forward if parcel.bytes.is_empty() => to.shutdown(Shutdown::Write)?,
                Action::Forward => {
                    let length = parcel.bytes.len();
                    let allowed = self.board.allowed(self.key, self.direction, length);
                    to.write_all(&parcel.bytes[..allowed])?;
                    self.count(allowed as u64);
                    if allowed < length {
                        self.board.leave(self.key);
                        return Ok(());
                    }
                }
            }
        }
        Ok(())
    }

    fn count(&self, bytes: u64) {
        self.board.update(|state| match self.direction {
            Direction::Up => state.bytes_up += bytes,
            Direction::Down => state.bytes_down += bytes,
        });
    }
}
