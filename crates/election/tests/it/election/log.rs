//! What is logged of a leadership.

use std::fmt::{Debug, Write};
use std::sync::{Arc, Mutex};

use frazil_coord::MemoryStore;
use frazil_coord::{Group, Slot};
use frazil_election::Elections;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use crate::stage::{settings, soon};

/// Lines of this library, each with its level, its message and its fields.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<(Level, String)>>>);

impl Lines {
    fn have(&self, level: Level, parts: &[&str]) -> bool {
        let lines = self.0.lock().unwrap();
        lines.iter().any(|(of, line)| *of == level && parts.iter().all(|part| line.contains(part)))
    }
}

impl Subscriber for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("frazil_election")
    }

    fn event(&self, event: &Event<'_>) {
        struct Line(String);
        impl Visit for Line {
            fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
                write!(self.0, "{}={value:?} ", field.name()).unwrap();
            }
        }
        let mut line = Line(String::new());
        event.record(&mut line);
        self.0.lock().unwrap().push((*event.metadata().level(), line.0));
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

#[test]
fn a_leadership_is_logged_from_its_beginning_to_its_end() {
    let lines = Lines::default();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    tracing::subscriber::with_default(lines.clone(), || {
        runtime.block_on(async {
            let store = MemoryStore::new();
            let elections = Elections::new(Arc::new(store.clone()));
            let candidate = elections.candidate("job", settings("me")).unwrap();
            let leadership = soon(candidate.campaign()).await.unwrap();
            let token = format!("token={} ", leadership.token());
            let of = |message: &'static str| [message, "slot=e/job ", &token].map(String::from);
            let have = |level, parts: [String; 3]| {
                lines.have(level, &parts.each_ref().map(String::as_str))
            };
            assert!(have(Level::INFO, of("message=became the leader")));
            assert!(lines.have(Level::INFO, &["became the leader", "instance=\"me\""]));
            soon(async {
                while !have(Level::DEBUG, of("message=heartbeat sent")) {
                    tokio::task::yield_now().await;
                }
            })
            .await;
            leadership.resign().await.unwrap();
            assert!(have(Level::INFO, of("message=releasing the leadership")));

            let leadership = soon(candidate.campaign()).await.unwrap();
            store.lose(&Slot::named(Group::Elections, "job").unwrap());
            soon(leadership.cancelled()).await;
            let token = format!("token={} ", leadership.token());
            assert!(lines.have(Level::INFO, &["lost the leadership", &token, "loss=the store"]));
        });
    });
}
