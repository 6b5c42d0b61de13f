//! A future that is polled only when it was woken, for timers beside a busy connection.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

/// Polls what it holds only when that asked to be polled, not whenever its task wakes up.
///
/// A connection wakes up for every request; a timer and the end of the server beside it would be
/// asked each time, and the locks in them cost more than the rest of a short request.
pub(crate) struct PollOnWake<F> {
    future: Pin<Box<F>>,
    flag: Arc<WakeFlag>,
    waker: Waker,
}

struct WakeFlag {
    is_raised: AtomicBool,
    task: Mutex<Option<Waker>>,
}

impl<F: Future> PollOnWake<F> {
    pub(crate) fn new(future: F) -> Self {
        // It must be polled once to begin.
        let flag = Arc::new(WakeFlag { is_raised: AtomicBool::new(true), task: Mutex::new(None) });
        Self { future: Box::pin(future), waker: flag.clone().into(), flag }
    }
}

impl Wake for WakeFlag {
    fn wake(self: Arc<Self>) {
        // Release: pairs with the swap in `poll`, so that whoever sees the ring sees its reason.
        self.is_raised.store(true, Ordering::Release);
        if let Some(task) = &*self.task.lock().unwrap_or_else(PoisonError::into_inner) {
            task.wake_by_ref();
        }
    }
}

impl<F: Future> Future for PollOnWake<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        // Acquire: pairs with the store in `wake`.
        if !self.flag.is_raised.load(Ordering::Relaxed)
            || !self.flag.is_raised.swap(false, Ordering::Acquire)
        {
            return Poll::Pending;
        }
        {
            let mut task = self.flag.task.lock().unwrap_or_else(PoisonError::into_inner);
            // A task keeps its waker for life, as long as nobody moves this into another one.
            if task.as_ref().is_none_or(|known| !known.will_wake(context.waker())) {
                *task = Some(context.waker().clone());
            }
        }
        let waker = self.waker.clone();
        self.future.as_mut().poll(&mut Context::from_waker(&waker))
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;

    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn it_is_polled_when_it_rings_and_only_then() {
        let polls = Rc::new(Cell::new(0));
        let (ring, rung) = oneshot::channel();
        let mut rung = Box::pin(rung);
        let counted = std::future::poll_fn({
            let polls = polls.clone();
            move |context| {
                polls.set(polls.get() + 1);
                rung.as_mut().poll(context)
            }
        });
        let mut aside = PollOnWake::new(counted);
        for _ in 0..10 {
            tokio::select! {
                biased;
                _ = &mut aside => panic!("it has not rung"),
                () = tokio::task::yield_now() => {}
            }
        }
        assert_eq!(polls.get(), 1);
        ring.send(7).unwrap();
        assert_eq!((aside.await, polls.get()), (Ok(7), 2));
    }
}
