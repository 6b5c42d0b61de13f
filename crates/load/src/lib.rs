//! Load for frazil servers, and for the library itself: requests over HTTP, gRPC and RESP, as fast as
//! answers come or at a rate, timed from when each was due, and verified.
//!
//! ```no_run
//! # async fn doc() -> Result<(), frazil_load::Error> {
//! use frazil_load::{Accept, Address, Call, Plan, Quiet, measure};
//!
//! let address: Address = "http://127.0.0.1:7780".parse()?;
//! let mut plan = Plan::new(address, Call::Http(Accept::Binary));
//! plan.batch = 100;
//! plan.verify = true;
//! let report = measure(plan, &mut Quiet).await?;
//! println!("{}", report.results.ids_per_second);
//! # Ok(())
//! # }
//! ```

mod address;
mod book;
mod check;
mod chunked;
mod client;
mod compare;
mod connect;
mod course;
mod descriptors;
mod error;
mod fault;
mod grpc;
mod http;
mod library;
mod machine;
mod moment;
mod observer;
mod plan;
mod probe;
mod report;
mod resp;
mod schedule;
mod tally;
mod target;
mod threads;
mod unlike;
mod verify;

pub use self::address::{Address, Protocol};
pub use self::compare::Comparison;
pub use self::course::measure;
pub use self::error::Error;
pub use self::library::{Library, LibraryClock, measure_library};
pub use self::observer::{Observer, Pages, Quiet, Snapshot};
pub use self::plan::{Accept, Call, Plan};
pub use self::report::{Report, Results, Sample, duration_text, rate_text};

/// Runs what the README shows.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
