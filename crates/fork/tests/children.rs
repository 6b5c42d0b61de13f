//! Real forks: of a mark, and of a client with IDs that were fetched ahead.
mod forking;

use std::net::SocketAddr;
use std::sync::Mutex;
use std::time::Duration;

use frazil_client::blocking::Client;
use frazil_fork::Birthmark;
use frazil_server::{App, Config};

use self::forking::{alone, forked, in_child, repeated};

#[test]
fn a_mark_is_false_in_children_and_in_theirs() {
    let _alone = alone();
    for mark in [Birthmark::new(), Birthmark::by_number()] {
        let told = in_child(|| {
            let own = Birthmark::new();
            vec![u64::from(mark.is_here()), u64::from(own.is_here())]
        });
        assert_eq!(told, [0, 1], "{mark:?}");
        assert!(mark.is_here(), "the parent is what it was");
    }
}

/// A server that runs as long as the test does.
fn serve() -> (tokio::runtime::Runtime, SocketAddr, tempfile::TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let store = format!("file:{}", directory.path().display());
    let mut config = Config::default();
    config.node = frazil::Node::builder().store(&store);
    config.http = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
    (config.grpc, config.resp) = (None, None);
    let address = runtime.block_on(async {
        let app = App::bind(config).await.unwrap();
        let (addrs, mut condition) = (app.addrs(), app.condition());
        tokio::spawn(app.run(std::future::pending()));
        condition.wait_for(|condition| condition.state.is_ready()).await.unwrap();
        addrs.http.unwrap()
    });
    (runtime, address, directory)
}

#[test]
fn a_child_never_hands_out_what_its_parent_had_fetched() {
    let _alone = alone();
    const TAKEN: usize = 300;
    let (_runtime, address, _directory) = serve();
    let settings = frazil_client::Client::builder()
        .endpoint(format!("http://{address}"))
        .deadline(Duration::from_secs(20))
        .max_age(Duration::from_secs(600));
    let client = Client::connect_with(settings).unwrap();
    let take = |count: usize| -> Vec<u64> {
        (0..count).map(|_| client.next().map_or(0, |id| id.to_u64())).collect()
    };
    let mut all = take(10);
    let pooled = client.stats().pooled;
    assert!(pooled as usize > TAKEN, "there is something to be copied: {pooled}");
    for _ in 0..3 {
        let of_child = in_child(|| take(TAKEN));
        assert_eq!(of_child.len(), TAKEN);
        all.extend(of_child);
        // A grandchild, whose parent has a pool of its own already.
        let of_both = in_child(|| {
            let mut own = take(10);
            own.extend(forked(|| take(TAKEN)));
            own.extend(take(TAKEN));
            own
        });
        assert_eq!(of_both.len(), 10 + 2 * TAKEN);
        all.extend(of_both);
    }
    all.extend(take(TAKEN));
    assert!(!all.contains(&0), "a call failed in a child");
    assert_eq!(repeated(&all), 0, "of {}", all.len());
}

/// The control: IDs in memory are copied, and the checker sees it.
#[test]
fn a_pool_that_knows_nothing_of_forks_repeats_its_ids() {
    let _alone = alone();
    let (_runtime, address, _directory) = serve();
    let client = Client::connect([format!("http://{address}")]).unwrap();
    let pool = Mutex::new(client.batch(1000).unwrap());
    let take = || -> Vec<u64> {
        (0..100).filter_map(|_| pool.lock().unwrap().pop()).map(|id| id.to_u64()).collect()
    };
    let mut all = in_child(take);
    all.extend(take());
    assert_eq!(repeated(&all), 100);
}
