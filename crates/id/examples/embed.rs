//! The example of the README.
#![allow(clippy::print_stdout, reason = "an example shows something")]

use frazil_id::{Format, Generator, Id, Layout};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let layout = Layout::FRAZIL;
    let ids = Generator::system(&layout, 7)?; // share it between threads by reference or Arc

    let id = ids.next()?; // waits, at most for the next millisecond, when 4,096 are used up
    println!("{id} or {}", id.text(Format::Base62Sortable));

    let parts = id.parts(&layout)?;
    println!("worker {} at {} ms", parts.worker, layout.unix_ms(parts.tick));

    for id in &ids.batch(10_000)? {
        assert!(id > Id::from_u64(0));
    }

    // `try_next` never blocks: it says why there is no ID now, and for how long.
    if let Err(not_ready) = ids.try_next() {
        println!("{not_ready}");
    }
    Ok(())
}
