//! A TCP proxy on the loopback address that can be told to misbehave.

mod connection;
mod switchboard;

use std::io;
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use switchboard::{Mode, Switchboard};

/// Forwards connections to a target, and does what it is told to them.
///
/// Every control acts at once on all connections, open and new. Only one of `cut`, `black_hole`,
/// `hold_replies` and `drop_replies` is in force at a time; the last one called. What was held back
/// is forwarded, in order, once the mode in force lets it pass.
///
/// ```no_run
/// # use std::time::Duration;
/// let redis = frazil_rig::Redis::start()?;
/// let proxy = frazil_rig::Proxy::start(redis.address())?;
/// proxy.hold_replies();
/// // ... a client of proxy.address() sends a request ...
/// proxy.wait_for_bytes_answered(0, Duration::from_secs(5))?; // Redis has done it
/// proxy.heal(); // the client gets its answer
/// # std::io::Result::Ok(())
/// ```
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    board: Arc<Switchboard>,
    acceptor: Option<JoinHandle<()>>,
}

impl Proxy {
    /// Starts a proxy to `target`: a `SocketAddr` or text such as `127.0.0.1:6379`.
    ///
    /// # Errors
    ///
    /// If the target is no address, or no port or thread is to be had.
    pub fn start(target: impl ToSocketAddrs) -> io::Result<Self> {
        let board = Arc::new(Switchboard::new(first_of(target)?));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let shared = Arc::clone(&board);
        let acceptor = thread::Builder::new()
            .name("rig-proxy-accept".to_owned())
            .spawn(move || accept(&listener, &shared))?;
        Ok(Self { address, board, acceptor: Some(acceptor) })
    }

    /// Where clients connect: `127.0.0.1:PORT`.
    #[must_use]
    pub fn address(&self) -> String {
        self.address.to_string()
    }

    /// The port of [`Proxy::address`].
    #[must_use]
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Closes all connections, and each new one as soon as it is made.
    pub fn cut(&self) {
        self.board.set_mode(Mode::Cut);
        self.board.close_all();
    }

    /// Closes all connections; new ones are let through as before.
    pub fn disconnect(&self) {
        self.board.close_all();
    }

    /// Sends these bytes to all clients, as if the target had sent them next, and closes the connections; new ones
    /// are let through as before. Replies that pass at the same time may mix with them: hold those back first.
    pub fn disconnect_with(&self, bytes: &[u8]) {
        self.board.close_all_with(bytes);
    }

    /// Takes connections and bytes from both sides and forwards nothing, not even a close.
    pub fn black_hole(&self) {
        self.board.set_mode(Mode::BlackHole);
    }

    /// Lets requests pass and keeps the replies until [`Proxy::heal`].
    pub fn hold_replies(&self) {
        self.board.set_mode(Mode::HoldReplies);
    }

    /// Lets requests pass and throws the replies away. A connection that lost some is closed by
    /// [`Proxy::heal`], for its stream has a hole.
    pub fn drop_replies(&self) {
        self.board.set_mode(Mode::DropReplies);
    }

    /// Lets so many bytes of replies pass on each connection, counted from now or from when it is
    /// made, and closes it in the middle of what would be more. [`Proxy::heal`] ends it.
    pub fn cut_after(&self, bytes: u64) {
        self.board.cut_after(bytes);
    }

    /// Delays requests and replies by this much each.
    pub fn delay(&self, delay: Duration) {
        self.delay_requests(delay);
        self.delay_replies(delay);
    }

    /// Delays what goes to the target.
    pub fn delay_requests(&self, delay: Duration) {
        self.board.update(|state| state.delay_up = delay);
    }

    /// Delays what comes from the target.
    pub fn delay_replies(&self, delay: Duration) {
        self.board.update(|state| state.delay_down = delay);
    }

    /// Ends all misbehaviour, delays included.
    pub fn heal(&self) {
        self.board.heal();
    }

    /// Sends new connections elsewhere; open ones stay where they are (see [`Proxy::disconnect`]).
    ///
    /// # Errors
    ///
    /// If the target is no address.
    pub fn retarget(&self, target: impl ToSocketAddrs) -> io::Result<()> {
        let target = first_of(target)?;
        self.board.update(|state| state.target = target);
        Ok(())
    }

    /// How many connections were taken since the start, also those that were cut at once.
    #[must_use]
    pub fn connections(&self) -> u64 {
        self.board.read(|state| state.accepted)
    }

    /// How many connections are open now.
    #[must_use]
    pub fn open_connections(&self) -> usize {
        self.board.read(|state| state.open.len())
    }

    /// How many bytes were forwarded to the target.
    #[must_use]
    pub fn bytes_up(&self) -> u64 {
        self.board.read(|state| state.bytes_up)
    }

    /// How many bytes were forwarded to clients.
    #[must_use]
    pub fn bytes_down(&self) -> u64 {
        self.board.read(|state| state.bytes_down)
    }

    /// How many bytes the target has sent, whether or not they were forwarded.
    #[must_use]
    pub fn bytes_answered(&self) -> u64 {
        self.board.read(|state| state.bytes_answered)
    }

    /// How many bytes from the target were thrown away.
    #[must_use]
    pub fn bytes_dropped(&self) -> u64 {
        self.board.read(|state| state.bytes_dropped)
    }

    /// Waits until more than this many connections were taken.
    ///
    /// # Errors
    ///
    /// If that takes longer than `limit`.
    pub fn wait_for_connections(&self, more_than: u64, limit: Duration) -> io::Result<()> {
        self.board.wait("connections", limit, |state| state.accepted > more_than)
    }

    /// Waits until more than this many bytes were forwarded to the target.
    ///
    /// # Errors
    ///
    /// If that takes longer than `limit`.
    pub fn wait_for_bytes_up(&self, more_than: u64, limit: Duration) -> io::Result<()> {
        self.board.wait("bytes to the target", limit, |state| state.bytes_up > more_than)
    }

    /// Waits until more than this many bytes were forwarded to clients.
    ///
    /// # Errors
    ///
    /// If that takes longer than `limit`.
    pub fn wait_for_bytes_down(&self, more_than: u64, limit: Duration) -> io::Result<()> {
        self.board.wait("bytes to the clients", limit, |state| state.bytes_down > more_than)
    }

    /// Waits until the target has sent more than this many bytes, forwarded or not: with
    /// [`Proxy::hold_replies`], until it has done what was asked.
    ///
    /// # Errors
    ///
    /// If that takes longer than `limit`.
    pub fn wait_for_bytes_answered(&self, more_than: u64, limit: Duration) -> io::Result<()> {
        self.board.wait("bytes from the target", limit, |state| state.bytes_answered > more_than)
    }

    /// Waits until more than this many bytes from the target were thrown away.
    ///
    /// # Errors
    ///
    /// If that takes longer than `limit`.
    pub fn wait_for_bytes_dropped(&self, more_than: u64, limit: Duration) -> io::Result<()> {
        self.board.wait("bytes to throw away", limit, |state| state.bytes_dropped > more_than)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.board.set_mode(Mode::Ended);
        self.board.close_all();
        // Wakes the acceptor; if even that fails, its thread is left to the end of the process.
        if let Ok(stream) = TcpStream::connect(self.address)
            && let Some(acceptor) = self.acceptor.take()
        {
            let _ = stream.shutdown(Shutdown::Both);
            let _ = acceptor.join();
        }
    }
}

fn first_of(target: impl ToSocketAddrs) -> io::Result<SocketAddr> {
    target.to_socket_addrs()?.next().ok_or_else(|| io::Error::other("the target has no address"))
}

/// Ends, with all its connections' threads, when the mode is [`Mode::Ended`].
fn accept(listener: &TcpListener, board: &Arc<Switchboard>) {
    thread::scope(|scope| {
        for client in listener.incoming() {
            if board.ended() {
                return;
            }
            let Ok(client) = client else { continue };
            board.update(|state| state.accepted += 1);
            let spawned = thread::Builder::new()
                .name("rig-proxy-connection".to_owned())
                .spawn_scoped(scope, || connection::serve(client, board));
            // Without a thread the connection can not be served; dropping it closes it.
            drop(spawned);
        }
    });
}
