//! Issuing allocates nothing.

use std::hint::black_box;

use allocation_counter::measure;
use frazil_id::{Format, Generator, Id, Layout, ManualClock, Options, TickerClock};

fn allocations(work: impl FnOnce()) -> u64 {
    measure(work).count_total
}

#[test]
fn next_and_batches_into_a_buffer_allocate_nothing() {
    let ids = Generator::system(&Layout::FRAZIL, 1).unwrap();
    let next = allocations(|| {
        for _ in 0..10_000 {
            black_box(ids.next().unwrap());
        }
    });
    // By a clock that stands: a batch over ticks of which one passed unused has two parts, and a
    // list of them.
    let clock = ManualClock::new(&Layout::FRAZIL, 1_000);
    let options = Options::default().with_floor(999);
    let ids = Generator::new(&Layout::FRAZIL, 1, clock, options).unwrap();
    let mut buffer = [Id::from_u64(0); 4096];
    let batches = allocations(|| {
        for n in [1, 100, 3995] {
            black_box(ids.try_batch(n).unwrap().copy_to(&mut buffer));
        }
    });
    assert_eq!((next, batches), (0, 0));
}

#[test]
fn the_ticker_clock_and_text_forms_allocate_nothing() {
    let layout = Layout::FRAZIL;
    let clock = TickerClock::start(&layout).unwrap();
    let ids = Generator::new(&layout, 1, clock, Options::default()).unwrap();
    let issued = allocations(|| {
        for &format in Format::ALL {
            let id = ids.next().unwrap();
            let text = id.text(format);
            assert_eq!(Id::parse(&text, format), Ok(id));
        }
    });
    assert_eq!(issued, 0);
}

/// The counter itself: it must see an allocation.
#[test]
fn the_counter_counts() {
    assert_eq!(allocations(|| drop(black_box(vec![1_u8]))), 1);
}
