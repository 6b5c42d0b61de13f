//! Connections that are cut in the middle of answers.

use frazil_rig::Proxy;

use super::*;

/// Numbers by chance, the same in every run.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_requests_through_cut_connections_hand_out_distinct_ids() {
    const REQUESTS: u64 = 10_000;
    let site = Site::start().await;
    let proxy = Proxy::start(site.addrs.http.unwrap()).unwrap();
    let client = direct([format!("http://{}", proxy.address())])
        .backoff(Duration::from_micros(100)..=Duration::from_millis(1))
        .connect()
        .await
        .unwrap();
    let mut chance = Chance(0x5eed);
    let (mut ids, mut failed) = (Vec::new(), 0);
    while client.stats().requests < REQUESTS {
        // A third is cut: in the head, in the IDs, or not at all if the answer is shorter.
        match chance.below(3) {
            0 => proxy.cut_after(chance.below(1000)),
            _ => proxy.heal(),
        }
        let count = usize::try_from(1 + chance.below(80)).unwrap();
        match client.batch(count).await {
            Ok(batch) => {
                assert_eq!(batch.len(), count);
                ids.extend(batch);
            }
            Err(error) => {
                assert!(error.is_retryable(), "{error}");
                failed += 1;
            }
        }
    }
    let stats = client.stats();
    assert_eq!(repeated(&ids), 0, "of {}", ids.len());
    assert!(stats.attempts <= 2 * stats.requests, "{stats:?}");
    assert!(stats.failures > REQUESTS / 20 && failed > 0, "it was cut: {stats:?}");
    site.stop().await;
}

/// The control of the above: who takes what came for what was sent has IDs that nobody issued.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_believes_a_cut_answer_repeats_ids() {
    let site = Site::start().await;
    let proxy = Proxy::start(site.addrs.http.unwrap()).unwrap();
    let before = proxy.bytes_down();
    assert_eq!(naive(proxy.address()).await.len(), 8);
    let whole = proxy.bytes_down() - before;
    // Three bytes of an ID are its year.
    proxy.cut_after(whole - 5);
    let mut ids = Vec::new();
    for _ in 0..5 {
        let body = naive(proxy.address()).await;
        assert_eq!(body.len(), 3);
        ids.push(believed(&body));
    }
    assert_eq!(repeated(&ids), 4);
    site.stop().await;
}
