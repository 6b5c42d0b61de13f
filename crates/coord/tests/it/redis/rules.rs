//! The scripts against `rules`: random acts on both must end alike.

use std::collections::BTreeMap;
use std::time::Duration;

use frazil_coord::MemoryStore;
use frazil_coord::internal::stores::redis::RedisStore;
use frazil_coord::internal::time::unix_ms;
use frazil_coord::internal::{Acquired, Ask, Choice, Claim, Extended, Leasing, Tenure};
use frazil_coord::{
    Entry, Found, Group, Loss, Nonce, Presence, Put, Record, Slot, Store, Token, Version,
};
use frazil_rig::{FalseClock, Redis};

use crate::redis::lab::Place;

/// For each seed.
const STEPS: u32 = 800;
const WINDOW_MS: u64 = 60_000;
const SLOTS: u64 = 3;

/// A seeded source of choices.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }

    fn one_in(&mut self, sides: u64) -> bool {
        self.below(sides) == 0
    }
}

/// Both stores, and the same holders in each.
struct Twins<'a> {
    redis: &'a Redis,
    clock: &'a FalseClock,
    real: RedisStore,
    model: MemoryStore,
    /// Versions differ between the two; everything else is the same.
    metas: (Version, Version),
    tenures: Vec<(Tenure, Tenure)>,
    claims: Vec<(Claim, Claim)>,
    dice: Dice,
    start: u64,
    now: u64,
}

impl Twins<'_> {
    /// Times that go on by a second each, with the server's clock, and differ from it by less than
    /// what is refused.
    fn time(&mut self) -> u64 {
        self.now += 1000;
        let ahead = i64::try_from(self.now).unwrap() - i64::try_from(unix_ms()).unwrap();
        self.clock.set(ahead * 1_000_000).unwrap();
        self.now - 9000 + self.dice.below(18_000)
    }

    /// A wish: within the window, beyond it, or less than there is already.
    fn horizon(&mut self, now: u64) -> u64 {
        match self.dice.one_in(3) {
            true => now - 1000,
            false => now + self.dice.below(2 * WINDOW_MS),
        }
    }

    fn slot(&mut self) -> Slot {
        Slot::worker(u32::try_from(self.dice.below(SLOTS)).unwrap())
    }

    async fn entries(&self, slot: &Slot) -> (Option<Entry>, Option<Entry>) {
        let find = |entries: Vec<Entry>| entries.into_iter().find(|entry| entry.slot == *slot);
        let real = find(self.real.list(Group::Workers).await.unwrap());
        (real, find(self.model.list(Group::Workers).await.unwrap()))
    }

    async fn act(&mut self) {
        let slot = self.slot();
        match self.dice.below(12) {
            0..=4 => self.acquire(slot).await,
            5 | 6 => self.extend().await,
            7 | 8 => self.release().await,
            9 => self.put(slot).await,
            10 => self.lapse(slot).await,
            _ if self.dice.one_in(6) => self.forget(slot).await,
            _ => {}
        }
        self.compare().await;
    }

    async fn acquire(&mut self, slot: Slot) {
        let repeated = self.dice.one_in(6) && !self.claims.is_empty();
        let (real, model) = if repeated {
            let at = self.dice.below(self.claims.len() as u64);
            let (real, model) = self.claims[usize::try_from(at).unwrap()].clone();
            let now = self.time();
            (Claim { now, ..real }, Claim { now, ..model })
        } else {
            self.claim(slot).await
        };
        let got = self.real.acquire(&real).await.unwrap();
        let expected = self.model.acquire(&model).await.unwrap();
        match (&got, &expected) {
            (Acquired::Held(a), Acquired::Held(b)) => {
                assert_eq!((&a.slot, a.floor, a.horizon), (&b.slot, b.floor, b.horizon));
                self.tenures.push((a.clone(), b.clone()));
            }
            _ => assert_eq!(got, expected, "{real:?}"),
        }
        // Repeating a claim of any is this store's own promise, and has its own test.
        if matches!(real.choice, Choice::This(..)) {
            self.claims.push((real, model));
        }
    }

    async fn claim(&mut self, slot: Slot) -> (Claim, Claim) {
        let (now, number) = (self.time(), slot.number().unwrap());
        let (real, model) = self.entries(&slot).await;
        let version = |entry: Option<Entry>| entry.map_or(Version(0), |entry| entry.version);
        let (mut versions, mut metas) = ((version(real), version(model)), self.metas);
        if self.dice.one_in(8) {
            versions = (Version(1), Version(u64::MAX));
        }
        if self.dice.one_in(12) {
            metas = (Version(1), Version(u64::MAX));
        }
        let favourite = self.dice.one_in(2).then_some(number);
        let pick = self.dice.one_in(2);
        let choice = |version| match pick {
            true => Choice::Any { first: number, last: number, favourite },
            false => Choice::This(slot.clone(), version),
        };
        let quarantine = if self.dice.one_in(6) { now + self.dice.below(5000) } else { 0 };
        let claim = Claim {
            choice: choice(versions.0),
            nonce: Nonce::from_bits(u128::from(self.dice.below(1 << 30)) + 1),
            holder: "a \"name\" \\ with\nmarks".into(),
            info: BTreeMap::from([("k".into(), "v/\u{1}".into())]),
            ttl: Duration::from_secs(6000),
            now,
            ask: self.horizon(now),
            window_ms: WINDOW_MS,
            quarantine,
            meta: metas.0,
        };
        let twin = Claim { choice: choice(versions.1), meta: metas.1, ..claim.clone() };
        (claim, twin)
    }

    fn tenure(&mut self) -> Option<(Tenure, Tenure)> {
        // Mostly one of the latest, and now and then an old one.
        let reach =
            if self.dice.one_in(4) { self.tenures.len() } else { self.tenures.len().min(3) };
        let back = usize::try_from(self.dice.below(reach.max(1) as u64)).unwrap();
        self.tenures.len().checked_sub(1 + back).map(|at| self.tenures[at].clone())
    }

    async fn extend(&mut self) {
        let Some((real, model)) = self.tenure() else { return };
        let now = self.time();
        let horizon = self.horizon(now);
        let ask = Ask { horizon, ttl: Duration::from_secs(6000), now, window_ms: WINDOW_MS };
        let got = self.real.extend(&real, &ask).await.unwrap();
        let expected = self.model.extend(&model, &ask).await.unwrap();
        match (&got, &expected) {
            (Extended::Held(a), Extended::Held(b)) => {
                assert_eq!((&a.slot, a.floor, a.horizon), (&b.slot, b.floor, b.horizon));
                self.tenures.push((a.clone(), b.clone()));
            }
            (
                Extended::Lost(Loss::Superseded { holder, .. }),
                Extended::Lost(Loss::Superseded { holder: other, .. }),
            )
            | (
                Extended::Lost(Loss::Overlapped { holder, .. }),
                Extended::Lost(Loss::Overlapped { holder: other, .. }),
            ) => assert_eq!(holder, other),
            _ => assert_eq!(got, expected, "{real:?}"),
        }
    }

    async fn release(&mut self) {
        let Some((real, model)) = self.tenure() else { return };
        let last = self.time();
        let got = self.real.release(&real, last).await.map_err(|error| error.kind());
        let expected = self.model.release(&model, last).await.map_err(|error| error.kind());
        assert_eq!(got, expected, "{real:?}");
    }

    async fn put(&mut self, slot: Slot) {
        let (real, model) = self.entries(&slot).await;
        let floor = self.time();
        // A higher token than any: those of the two stores must stay comparable.
        let record = Record {
            token: Token(self.start + 10_000_000 + self.dice.below(1000)),
            nonce: None,
            holder: "put".into(),
            floor,
            horizon: floor + self.dice.below(100_000),
            renewed: 1,
            expires: None,
            released: false,
            info: BTreeMap::new(),
        };
        let stale = self.dice.one_in(4);
        let version = |entry: Option<Entry>| match entry {
            _ if stale => Version(3),
            entry => entry.map_or(Version(0), |entry| entry.version),
        };
        // A forgotten record keeps its version in the model, and has none in Redis.
        let got = self.real.put(&slot, version(real), &record).await.unwrap();
        let expected = match stale {
            true => Put::Conflict,
            false => self.model.put(&slot, version(model), &record).await.unwrap(),
        };
        assert_eq!(matches!(got, Put::Done(_)), matches!(expected, Put::Done(_)), "{slot}");
    }

    async fn lapse(&mut self, slot: Slot) {
        self.model.expire(&slot);
        let script = "local text = redis.call('HGET', KEYS[1], ARGV[1])
            if not text then return end
            redis.call('HSET', KEYS[1], ARGV[1], (string.gsub(text, '\"expires\":%d+', '\"expires\":1')))
            redis.call('ZADD', KEYS[2], 'XX', 1, ARGV[1])";
        let (records, held) = ("{frazil:lab}:w", "{frazil:lab}:w:held");
        self.redis.cli(&["EVAL", script, "2", records, held, slot.name()]).unwrap();
    }

    async fn forget(&mut self, slot: Slot) {
        self.model.lose(&slot);
        // Both refuse a claim from before, but the model by what is left of the slot, and Redis by
        // its version, which is gone with the record.
        let is_other = |claim: &Claim| !matches!(&claim.choice, Choice::This(of, _) if *of == slot);
        self.claims.retain(|(claim, _)| is_other(claim));
        self.redis.cli(&["HDEL", "{frazil:lab}:w", slot.name()]).unwrap();
    }

    /// Everything that is kept, except versions, tokens and expiries, is the same.
    async fn compare(&self) {
        let plain = |entries: Vec<Entry>| -> BTreeMap<Slot, (Found, bool)> {
            let plain = entries.into_iter().map(|entry| {
                let found = match entry.found {
                    Found::Known(record) => {
                        Found::Known(Record { token: Token(0), expires: None, ..record })
                    }
                    found => found,
                };
                (entry.slot, (found, entry.presence == Presence::Free))
            });
            plain.collect()
        };
        let real = plain(self.real.list(Group::Workers).await.unwrap());
        assert_eq!(real, plain(self.model.list(Group::Workers).await.unwrap()));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scripts_and_rules_agree_on_random_acts() {
    let clock = FalseClock::new().unwrap();
    let redis = Redis::builder().clock(&clock).start().unwrap();
    let start = unix_ms();
    for seed in [1, 2, start] {
        println!("seed {seed}");
        redis.cli(&["FLUSHALL"]).unwrap();
        clock.set_right().unwrap();
        let place = Place::new(redis.url()).window(WINDOW_MS);
        let (real, model) = (place.open().await, MemoryStore::new());
        let real_meta = place.found(&real).await;
        let Put::Done(model_meta) = model.put_meta(None, &place.meta()).await.unwrap() else {
            panic!("a new store has meta")
        };
        let mut twins = Twins {
            redis: &redis,
            clock: &clock,
            real,
            model,
            metas: (real_meta, model_meta),
            tenures: Vec::new(),
            claims: Vec::new(),
            dice: Dice(seed),
            start,
            now: start,
        };
        for _ in 0..STEPS {
            twins.act().await;
        }
        assert!(twins.tenures.len() > 20, "only {} tenures", twins.tenures.len());
        for number in 0..u32::try_from(SLOTS).unwrap() {
            let of_slot = |(real, _): &&(Tenure, Tenure)| real.slot == Slot::worker(number);
            let tenures: Vec<_> = twins.tenures.iter().filter(of_slot).collect();
            for pair in tenures.windows(2) {
                let order = pair[0].0.token.cmp(&pair[1].0.token);
                assert_eq!(order, pair[0].1.token.cmp(&pair[1].1.token), "tokens of {pair:?}");
            }
        }
    }
}
