//! Sessions: how they begin, go on over connections, and end.

use std::error::Error as _;
use std::time::Duration;

use frazil_rig::{Proxy, ZooKeeper, ZooKeeperEnsemble, wait_until};
use frazil_zookeeper::{Client, CreateMode, Error, Stage, State};

use crate::place::{ANYONE, WAIT, config, connect, new_path, server, wait_for, within};

/// Creates an ephemeral node of this client.
async fn ephemeral(client: &Client) -> String {
    let path = new_path();
    client.create(&path, b"", CreateMode::Ephemeral, &ANYONE).await.unwrap();
    path
}

async fn wait_until_gone(client: &Client, path: &str) {
    let mut looks = tokio::time::interval(Duration::from_millis(20));
    within(async {
        while client.exists(path).await.unwrap().is_some() {
            looks.tick().await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_bound_the_time_out() {
    for (asked, granted) in [(100, 60), (0, 1), (30, 30)] {
        let mut config = config(server().port());
        config.session_timeout = Duration::from_secs(asked);
        config.silence_max = WAIT;
        if asked == 0 {
            // Nobody connects in no time.
            config.session_timeout = Duration::from_millis(900);
        }
        let client = Client::connect(&config).await.unwrap();
        assert_eq!(client.session_timeout(), Duration::from_secs(granted));
        assert_eq!(client.state(), State::Connected);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_client_closes_its_session_and_a_detached_one_does_not() {
    let watcher = connect(server().port()).await;
    let owner = connect(server().port()).await;
    let (path, clone) = (ephemeral(&owner).await, owner.clone());
    drop(owner);
    assert!(clone.exists(&path).await.unwrap().is_some(), "there is a clone");
    let under_way = clone.set_data(&path, b"last", None);
    drop(clone);
    under_way.await.unwrap();
    // At once, and not after the ten seconds that the session would last.
    let closed = tokio::time::timeout(Duration::from_secs(5), wait_until_gone(&watcher, &path));
    closed.await.unwrap();

    let mut config = config(server().port());
    config.detached = true;
    config.session_timeout = Duration::from_secs(3);
    let detached = Client::connect(&config).await.unwrap();
    let path = ephemeral(&detached).await;
    let (session, mut states) = (detached.session().clone(), detached.states());
    drop(detached);
    within(states.wait_for(|state| *state == State::Closed)).await.unwrap();
    watcher.sync("/").await.unwrap();
    assert!(watcher.exists(&path).await.unwrap().is_some(), "it was closed");
    // Another client goes on with it, and then nobody does.
    config.session = Some(session.clone());
    let again = Client::connect(&config).await.unwrap();
    assert_eq!(again.session_id(), session.id());
    assert!(again.exists(&path).await.unwrap().is_some());
    drop(again);
    wait_until_gone(&watcher, &path).await;
    let over = Client::connect(&config).await;
    assert!(matches!(over, Err(Error::SessionExpired)), "{over:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn another_client_goes_on_with_a_session_while_the_first_is_cut_off() {
    let proxy = Proxy::start(server().address()).unwrap();
    let mut config = config(proxy.port());
    config.detached = true;
    config.session_timeout = Duration::from_secs(30);
    let first = Client::connect(&config).await.unwrap();
    let path = ephemeral(&first).await;
    proxy.cut();
    wait_for(&first, State::Disconnected).await;
    config.session = Some(first.session().clone());
    config.hosts = vec![("127.0.0.1".into(), server().port())];
    let second = Client::connect(&config).await.unwrap();
    assert_eq!(second.session_id(), first.session_id());
    drop(first);
    proxy.heal();
    let written = second.set_data(&path, b"second", None).await.unwrap();
    assert_eq!(written.ephemeral_owner, second.session_id().0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_quiet_session_is_kept_alive() {
    let watcher = connect(server().port()).await;
    let mut config = config(server().port());
    config.session_timeout = Duration::from_secs(1);
    let client = Client::connect(&config).await.unwrap();
    let path = ephemeral(&client).await;
    let mut seconds = tokio::time::interval(Duration::from_secs(1));
    for _ in 0..5 {
        seconds.tick().await;
        assert!(watcher.exists(&path).await.unwrap().is_some());
    }
    assert!(!client.states().has_changed().unwrap(), "it was connected all the time");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_connection_is_made_again_and_the_session_goes_on() {
    let proxy = Proxy::start(server().address()).unwrap();
    let client = connect(proxy.port()).await;
    let path = ephemeral(&client).await;
    proxy.cut();
    wait_for(&client, State::Disconnected).await;
    let refused = client.exists(&path).await;
    assert!(matches!(refused, Err(Error::NotConnected)), "{refused:?}");
    proxy.heal();
    wait_for(&client, State::Connected).await;
    let owner = client.exists(&path).await.unwrap().unwrap().ephemeral_owner;
    assert_eq!(owner, client.session_id().0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_server_is_given_up_and_what_was_asked_of_it_may_have_been_done() {
    let proxy = Proxy::start(server().address()).unwrap();
    let mut config = config(proxy.port());
    config.silence_max = Duration::from_millis(500);
    let client = Client::connect(&config).await.unwrap();
    let path = new_path();
    proxy.drop_replies();
    let created = within(client.create(&path, b"", CreateMode::Persistent, &ANYONE)).await;
    let Err(lost @ Error::ConnectionLoss(_)) = created else { panic!("{created:?}") };
    assert!(lost.source().unwrap().to_string().contains("silent"), "{lost:?}");
    proxy.heal();
    wait_for(&client, State::Connected).await;
    assert!(client.exists(&path).await.unwrap().is_some(), "it was carried out");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_the_servers_end_is_expired() {
    let proxy = Proxy::start(server().address()).unwrap();
    let watcher = connect(server().port()).await;
    let mut config = config(proxy.port());
    config.session_timeout = Duration::from_secs(1);
    let client = Client::connect(&config).await.unwrap();
    let (path, mut watch) = (ephemeral(&client).await, client.watch("/").await.unwrap());
    proxy.black_hole();
    wait_until_gone(&watcher, &path).await;
    proxy.heal();
    wait_for(&client, State::Expired).await;
    assert!(matches!(client.exists(&path).await, Err(Error::SessionExpired)));
    within(async { while watch.next().await.is_some() {} }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_hears_nothing_takes_its_session_for_expired() {
    let proxy = Proxy::start(server().address()).unwrap();
    let mut config = config(proxy.port());
    config.session_timeout = Duration::from_secs(1);
    let client = Client::connect(&config).await.unwrap();
    proxy.cut();
    wait_for(&client, State::Expired).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_detached_client_that_is_dropped_does_not_come_back() {
    let proxy = Proxy::start(server().address()).unwrap();
    let mut config = config(proxy.port());
    config.detached = true;
    let client = Client::connect(&config).await.unwrap();
    proxy.cut();
    wait_for(&client, State::Disconnected).await;
    let mut states = client.states();
    drop(client);
    within(states.wait_for(|state| *state == State::Closed)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_is_dropped_while_disconnected_still_closes_its_session() {
    let proxy = Proxy::start(server().address()).unwrap();
    let watcher = connect(server().port()).await;
    let mut config = config(proxy.port());
    config.session_timeout = Duration::from_secs(60);
    let client = Client::connect(&config).await.unwrap();
    let path = ephemeral(&client).await;
    proxy.cut();
    wait_for(&client, State::Disconnected).await;
    drop(client);
    proxy.heal();
    wait_until_gone(&watcher, &path).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_outlives_a_restart_of_the_server() {
    let server = ZooKeeper::start().unwrap();
    let mut config = config(server.port());
    config.session_timeout = Duration::from_secs(60);
    let client = Client::connect(&config).await.unwrap();
    let path = ephemeral(&client).await;
    server.restart().unwrap();
    wait_for(&client, State::Connected).await;
    let owner = within(async {
        loop {
            // It may notice the loss only now.
            match client.exists(&path).await {
                Ok(stat) => break stat.unwrap().ephemeral_owner,
                Err(Error::ConnectionLoss(_) | Error::NotConnected) => {
                    wait_for(&client, State::Connected).await;
                }
                Err(other) => panic!("{other}"),
            }
        }
    });
    assert_eq!(owner.await, client.session_id().0);
}

#[tokio::test(flavor = "multi_thread")]
async fn another_server_goes_on_with_the_session_when_the_leader_dies() {
    let ensemble = ZooKeeperEnsemble::start(3).unwrap();
    let hosts: Vec<_> =
        ensemble.nodes().iter().map(|node| ("127.0.0.1".to_owned(), node.port())).collect();
    let mut config = frazil_zookeeper::Config::new(hosts);
    config.session_timeout = Duration::from_secs(30);
    let client = Client::connect(&config).await.unwrap();
    let path = ephemeral(&client).await;
    ensemble.kill_leader().unwrap();
    ensemble.leader_index().unwrap();
    let written = within(async {
        loop {
            wait_for(&client, State::Connected).await;
            match client.set_data(&path, b"after", None).await {
                Ok(stat) => break stat,
                Err(Error::ConnectionLoss(_) | Error::NotConnected) => {
                    tokio::task::yield_now().await
                }
                Err(other) => panic!("{other}"),
            }
        }
    });
    assert_eq!(written.await.ephemeral_owner, client.session_id().0);
}

#[tokio::test(flavor = "multi_thread")]
async fn hosts_that_cannot_be_used_are_told_with_their_reasons() {
    let hole = Proxy::start(server().address()).unwrap();
    hole.black_hole();
    let mut config = config(1);
    config.hosts.push(("127.0.0.1".into(), hole.port()));
    config.silence_max = Duration::from_millis(300);
    let Err(Error::Unreachable(failures)) = Client::connect(&config).await else { panic!() };
    let of = |port: u16| failures.iter().find(|f| f.host == format!("127.0.0.1:{port}")).unwrap();
    assert_eq!(of(1).stage, Stage::Connect);
    assert_eq!(of(1).cause.kind(), std::io::ErrorKind::ConnectionRefused);
    assert_eq!(of(hole.port()).stage, Stage::Session);
    assert_eq!(of(hole.port()).cause.kind(), std::io::ErrorKind::TimedOut);
    let text = Error::Unreachable(failures.clone()).to_string();
    assert!(text.contains("refused") && text.contains("no answer"), "{text}");
    // One that can be used is enough.
    config.hosts.push(("127.0.0.1".into(), server().port()));
    for _ in 0..5 {
        Client::connect(&config).await.unwrap();
    }
}

#[test]
fn a_client_whose_runtime_has_ended_is_closed() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let client = runtime.block_on(connect(server().port()));
    drop(runtime);
    wait_until("the end", WAIT, || client.state() == State::Closed).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    assert!(matches!(runtime.block_on(client.exists("/")), Err(Error::Closed)));
}
