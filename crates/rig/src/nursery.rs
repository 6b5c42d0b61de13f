//! The one thread that starts all children.
//!
//! Children carry a death signal (`setpriv --pdeathsig`), which the kernel sends when the *thread*
//! that started them ends. Tests run on threads of their own, and a server may outlive the test
//! that started it, for instance in a `static`. Therefore a thread that lives as long as the
//! process starts them: they end with the process, however that ends.

use std::io;
use std::process::{Child, Command};
use std::sync::OnceLock;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;

/// Starts `command`, which is to be wrapped in `setpriv --pdeathsig`, on the nursery's thread.
pub(crate) fn spawn(command: Command) -> io::Result<Child> {
    static NURSERY: OnceLock<Result<Sender<Order>, io::ErrorKind>> = OnceLock::new();
    let nursery = NURSERY.get_or_init(|| open().map_err(|error| error.kind()));
    let orders = nursery.as_ref().map_err(|kind| io::Error::from(*kind))?;
    let (reply, answer) = mpsc::channel();
    orders.send(Order { command, reply }).map_err(|_| gone())?;
    answer.recv().map_err(|_| gone())?
}

struct Order {
    command: Command,
    reply: Sender<io::Result<Child>>,
}

fn open() -> io::Result<Sender<Order>> {
    let (orders, inbox) = mpsc::channel();
    thread::Builder::new().name("rig-nursery".to_owned()).spawn(move || serve(&inbox))?;
    Ok(orders)
}

/// Never ends: the sender is in a `static`.
fn serve(inbox: &Receiver<Order>) {
    for mut order in inbox {
        // An answer that nobody waits for any more is of no use to anyone.
        let _ = order.reply.send(order.command.spawn());
    }
}

fn gone() -> io::Error {
    io::Error::other("the thread that starts processes has ended")
}
