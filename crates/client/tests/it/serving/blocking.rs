//! Programs without a runtime.

use frazil_client::blocking;

use super::*;

/// A server that runs while the test blocks.
fn with_site(test: impl FnOnce(&Site)) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let site = runtime.block_on(Site::start());
    test(&site);
    runtime.block_on(site.stop());
}

#[test]
fn the_blocking_client_needs_no_runtime_and_does_the_same() {
    with_site(|site| {
        let client = blocking::Client::connect([site.http(), site.grpc()]).unwrap();
        assert_eq!(client.info().unwrap().node, "tested");
        let mut ids: Vec<Id> = (0..10_000).map(|_| client.next().unwrap()).collect();
        ids.extend(client.batch(1234).unwrap());
        ids.extend(client.try_next());
        assert_eq!(repeated(&ids), 0);
        assert!(ids.len() >= 11_234);
        assert_eq!(client.layout(), Some(Layout::FRAZIL));
        assert_eq!(client.decode(ids[0]).unwrap(), Layout::FRAZIL.decode(ids[0]).unwrap());
        let ms = i64::try_from(client.unix_ms(ids[0]).unwrap()).unwrap();
        assert!(client.range(ms..ms + 1).unwrap().contains(&ids[0]));
        assert!(client.stats().hits > 0);
        client.close();
        assert!(matches!(client.next(), Err(Error::Closed)));
    });
}

#[test]
fn threads_share_a_blocking_client() {
    with_site(|site| {
        let client = blocking::Client::connect([site.http()]).unwrap();
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let client = client.clone();
                std::thread::spawn(move || -> Vec<Id> {
                    (0..20_000).map(|_| client.next().unwrap()).collect()
                })
            })
            .collect();
        let ids: Vec<Id> = threads.into_iter().flat_map(|t| t.join().unwrap()).collect();
        assert_eq!((ids.len(), repeated(&ids)), (80_000, 0));
    });
}

#[test]
fn it_works_within_a_runtime_and_after_one_has_ended() {
    with_site(|site| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let client = runtime.block_on(async {
            let client = blocking::Client::connect([site.http()]).unwrap();
            client.next().unwrap();
            client
        });
        drop(runtime);
        assert_eq!(client.batch(10).unwrap().len(), 10);
        // A client of another runtime, asked from none, says so once that is gone.
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        let orphan = runtime.block_on(site.client());
        drop(runtime);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        assert_eq!(runtime.block_on(orphan.batch(10)).unwrap().len(), 10, "in a new one");
    });
}
