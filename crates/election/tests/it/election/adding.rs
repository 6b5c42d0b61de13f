//! Any number of callbacks, added at any time.

use std::sync::{Arc, Mutex};

use frazil_coord::MemoryStore;
use frazil_election::{Callbacks, Elections, Elector, Proof};
use tokio::sync::watch;

use crate::election::callbacks::leads;
use crate::stage::{settings, soon};

fn elector(callbacks: Callbacks) -> Elector {
    let elections = Elections::new(Arc::new(MemoryStore::new()));
    Elector::start(elections.candidate("job", settings("a")).unwrap(), callbacks)
}

/// What was called.
#[derive(Clone, Default)]
struct Heard(watch::Sender<Vec<&'static str>>);

impl Heard {
    fn elected(&self, name: &'static str) -> impl FnMut(Proof) -> std::future::Ready<()> + use<> {
        let heard = self.0.clone();
        move |_| {
            heard.send_modify(|heard| heard.push(name));
            std::future::ready(())
        }
    }

    async fn until(&self, count: usize) -> Vec<&'static str> {
        let mut heard = self.0.subscribe();
        let heard = soon(heard.wait_for(|heard| heard.len() >= count)).await.unwrap();
        heard.clone()
    }
}

#[tokio::test]
async fn every_callback_is_called_in_the_order_of_their_adding() {
    let heard = Heard::default();
    let callbacks = Callbacks::new()
        .on_elected(heard.elected("first"))
        .on_elected(heard.elected("second"))
        .on_elected(heard.elected("third"));
    let elector = elector(callbacks);
    assert_eq!(heard.until(3).await, ["first", "second", "third"]);
    soon(elector.stop()).await.unwrap();
}

#[tokio::test]
async fn a_callback_that_is_added_later_hears_of_what_is_the_case() {
    let heard = Heard::default();
    let elector = elector(Callbacks::new().on_elected(heard.elected("first")));
    leads(&elector).await;
    heard.until(1).await;
    elector.on_elected(heard.elected("later"));
    assert_eq!(heard.until(2).await, ["first", "later"]);
    let (leader, mut told) = watch::channel(None);
    elector.on_leader_changed(move |now| {
        leader.send_replace(now);
        std::future::ready(())
    });
    soon(told.wait_for(|now| now.as_ref().is_some_and(|now| now.instance == "a"))).await.unwrap();
    soon(elector.stop()).await.unwrap();
    assert_eq!(heard.until(2).await.len(), 2, "each once");
}

#[tokio::test]
async fn callbacks_of_one_event_may_wait_for_each_other() {
    let elector = elector(Callbacks::new());
    let (send, receive) = tokio::sync::oneshot::channel::<()>();
    let ends = Arc::new(Mutex::new((Some(send), Some(receive))));
    let first = ends.clone();
    elector.on_lost(move |_, _| {
        let receive = first.lock().unwrap().1.take().expect("once");
        async move { receive.await.expect("the other runs too") }
    });
    elector.on_lost(move |_, _| {
        let send = ends.lock().unwrap().0.take().expect("once");
        async move { send.send(()).expect("the other waits") }
    });
    leads(&elector).await;
    soon(elector.stop()).await.unwrap();
}
