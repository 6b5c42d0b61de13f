//! A lane that keeps account of what it was told and of every time it used.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use frazil_coord::Grant;
use frazil_coord::internal::keeper::Lane;
use frazil_coord::internal::time::unix_ms;
use frazil_coord::{Act, Loss, UnixMs};

/// What happened, in the order in which it did, on both sides of a keeper.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// The lane was given a grant; whether the one before it could still be used.
    Open {
        grant: Grant,
        overlapped: bool,
    },
    Raise(UnixMs),
    Close,
    /// The store was asked to release.
    Release,
    /// The store was asked for something else.
    Asked(Act),
}

pub(crate) type Diary = Arc<Mutex<Vec<Event>>>;

#[derive(Debug, Default)]
pub(crate) struct TestLane {
    diary: Diary,
    /// How far its clock is ahead, in milliseconds.
    ahead_ms: AtomicU64,
    book: Mutex<Book>,
}

#[derive(Debug, Default)]
struct Book {
    grant: Option<Grant>,
    last: UnixMs,
    used: Vec<(Grant, UnixMs)>,
    lost: Vec<Loss>,
}

impl TestLane {
    pub(crate) fn new(diary: Diary) -> Arc<Self> {
        Self::ahead_by(0, diary)
    }

    /// One whose clock is ahead by this many milliseconds.
    pub(crate) fn ahead_by(ahead_ms: u64, diary: Diary) -> Arc<Self> {
        Arc::new(Self { diary, ahead_ms: AtomicU64::new(ahead_ms), book: Mutex::default() })
    }

    /// Its clock jumps.
    pub(crate) fn jump(&self, ahead_ms: u64) {
        self.ahead_ms.fetch_add(ahead_ms, Ordering::Relaxed);
    }

    /// Uses the next time, if there is one that may be used.
    pub(crate) fn use_one(&self) -> Option<UnixMs> {
        let mut book = self.book();
        let grant = book.grant?;
        let time = self.now().max(book.last + 1).max(grant.floor + 1);
        if time > grant.horizon {
            return None;
        }
        book.last = time;
        book.used.push((grant, time));
        Some(time)
    }

    /// Everything used so far, with the grant as it was then.
    pub(crate) fn used(&self) -> Vec<(Grant, UnixMs)> {
        self.book().used.clone()
    }

    pub(crate) fn grant(&self) -> Option<Grant> {
        self.book().grant
    }

    /// Every loss that it was told of.
    pub(crate) fn losses(&self) -> Vec<Loss> {
        self.book().lost.clone()
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap()
    }

    fn note(&self, event: Event) {
        self.diary.lock().unwrap().push(event);
    }
}

impl Lane for TestLane {
    fn now(&self) -> UnixMs {
        unix_ms() + self.ahead_ms.load(Ordering::Relaxed)
    }

    fn open(&self, grant: Grant) {
        let mut book = self.book();
        let overlapped = book.grant.is_some_and(|old| self.now() <= old.horizon);
        self.note(Event::Open { grant, overlapped });
        book.grant = Some(grant);
    }

    fn raise(&self, horizon: UnixMs) {
        self.note(Event::Raise(horizon));
        if let Some(grant) = &mut self.book().grant {
            grant.horizon = grant.horizon.max(horizon);
        }
    }

    fn last(&self) -> UnixMs {
        self.book().last
    }

    fn close(&self) -> UnixMs {
        self.note(Event::Close);
        let mut book = self.book();
        book.grant = None;
        book.last
    }

    fn lost(&self, loss: &Loss) {
        self.book().lost.push(loss.clone());
    }
}
