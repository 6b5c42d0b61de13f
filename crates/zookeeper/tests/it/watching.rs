//! Watches.

use frazil_rig::{Proxy, ZooKeeper, wait_until};
use frazil_zookeeper::{CreateMode, Event, State, Watch};

use crate::place::{ANYONE, WAIT, client_and_node, connect, new_path, server, wait_for, within};

async fn next(watch: &mut Watch) -> Event {
    within(watch.next()).await.unwrap()
}

/// How many paths are watched on a server, as it counts them itself.
fn watched(server: &ZooKeeper) -> usize {
    server.four_letter_word("wchp").unwrap().lines().filter(|line| line.starts_with('/')).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_tells_what_happens_to_a_node_and_below() {
    let writer = connect(server().port()).await;
    let watcher = connect(server().port()).await;
    let path = new_path();
    let mut watch = watcher.watch(&path).await.unwrap();
    let (child, persistent) = (format!("{path}/a"), CreateMode::Persistent);
    for path in [&path, &child, &format!("{child}/b"), &new_path()] {
        writer.create(path, b"", persistent, &ANYONE).await.unwrap();
    }
    writer.set_data(&child, b"text", None).await.unwrap();
    writer.delete(&format!("{child}/b"), None).await.unwrap();
    for event in [
        Event::Created(path.clone()),
        Event::Created(child.clone()),
        Event::Created(format!("{child}/b")),
        Event::Changed(child.clone()),
        Event::Deleted(format!("{child}/b")),
    ] {
        assert_eq!(next(&mut watch).await, event);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_comes_before_what_it_tells_of_is_read() {
    let (writer, path) = client_and_node().await;
    let watcher = connect(server().port()).await;
    let mut watch = watcher.watch(&path).await.unwrap();
    writer.set_data(&path, b"new", None).await.unwrap();
    watcher.sync("/").await.unwrap();
    assert_eq!(watcher.get_data(&path).await.unwrap().0, b"new");
    let told = tokio::time::timeout(std::time::Duration::ZERO, watch.next()).await;
    assert_eq!(told.unwrap(), Some(Event::Changed(path)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_goes_on_over_a_new_connection() {
    let proxy = Proxy::start(server().address()).unwrap();
    let (writer, path) = client_and_node().await;
    let watcher = connect(proxy.port()).await;
    let mut watches = Vec::new();
    // More paths than are set again at once.
    for number in 0..150 {
        watches.push(watcher.watch(&format!("{path}/{}{number}", "x".repeat(1000))).await.unwrap());
    }
    let mut watch = watcher.watch(&path).await.unwrap();
    proxy.disconnect();
    assert_eq!(next(&mut watch).await, Event::State(State::Disconnected));
    assert_eq!(next(&mut watch).await, Event::State(State::Connected));
    writer.set_data(&path, b"new", None).await.unwrap();
    assert_eq!(next(&mut watch).await, Event::Changed(path.clone()));
    for number in [0, 149] {
        let deep = format!("{path}/{}{number}", "x".repeat(1000));
        writer.create(&deep, b"", CreateMode::Persistent, &ANYONE).await.unwrap();
        let watch: &mut Watch = &mut watches[number];
        assert_eq!(next(watch).await, Event::State(State::Disconnected));
        assert_eq!(next(watch).await, Event::State(State::Connected));
        assert_eq!(next(watch).await, Event::Created(deep));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_that_is_dropped_ends_on_the_server_too_when_it_is_the_last_of_its_path() {
    let server = ZooKeeper::start().unwrap();
    let client = connect(server.port()).await;
    let mut first = client.watch("/a").await.unwrap();
    let second = client.watch("/a").await.unwrap();
    drop(client.watch("/b").await.unwrap());
    assert!(watched(&server) >= 1);
    drop(second);
    wait_until("the end of /b", WAIT, || watched(&server) == 1).unwrap();
    client.create("/a", b"", CreateMode::Persistent, &ANYONE).await.unwrap();
    assert_eq!(next(&mut first).await, Event::Created("/a".into()));
    drop(first);
    wait_until("the end of /a", WAIT, || watched(&server) == 0).unwrap();
    let mut again = client.watch("/a").await.unwrap();
    client.delete("/a", None).await.unwrap();
    assert_eq!(next(&mut again).await, Event::Deleted("/a".into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_ends_with_its_client() {
    let client = connect(server().port()).await;
    let mut watch = client.watch("/").await.unwrap();
    wait_for(&client, State::Connected).await;
    drop(client);
    within(async {
        let mut last = None;
        while let Some(event) = watch.next().await {
            last = Some(event);
        }
        assert_eq!(last, Some(Event::State(State::Closed)));
    })
    .await;
}
