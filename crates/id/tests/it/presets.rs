//! The named layouts against IDs from the wild.

use frazil_id::{Id, Layout, PRESETS, Parts, rfc3339};

struct Known {
    layout: Layout,
    id: u64,
    unix_ms: u64,
    parts: &'static [(&'static str, u64)],
    sequence: u64,
}

/// From the services' own documentation, except where noted.
fn known() -> [Known; 5] {
    [
        // Twitter's API documentation on IDs: a Tweet of 2018-10-10T20:19:24Z.
        Known {
            layout: Layout::TWITTER,
            id: 1_050_118_621_198_921_728,
            unix_ms: 1_539_202_764_211,
            parts: &[("datacenter", 10), ("worker", 27)],
            sequence: 0,
        },
        // Discord's API reference, "Snowflakes".
        Known {
            layout: Layout::DISCORD,
            id: 175_928_847_299_117_063,
            unix_ms: 1_462_015_105_796,
            parts: &[("worker", 1), ("process", 0)],
            sequence: 7,
        },
        // Instagram's engineering article on sharding: 1,387,263,000 ms after the epoch, user
        // 31,341 on shard 31341 % 2000 = 1341, the 5,001st ID of its table.
        Known {
            layout: Layout::INSTAGRAM,
            id: 1_387_263_000 << 23 | 1341 << 10 | (5001 % 1024),
            unix_ms: 1_314_220_021_721 + 1_387_263_000,
            parts: &[("shard", 1341)],
            sequence: 905,
        },
        // Mastodon's API documentation: a status created 2019-12-08T03:48:33.901Z, whose ID was
        // made 52 ms earlier.
        Known {
            layout: Layout::MASTODON,
            id: 103_270_115_826_048_975,
            unix_ms: 1_575_776_913_849,
            parts: &[],
            sequence: 40_911,
        },
        // Ours: computed by hand.
        Known {
            layout: Layout::JS53,
            id: 1000 << 12 | 3 << 8 | 255,
            unix_ms: 1_704_067_201_000,
            parts: &[("worker", 3)],
            sequence: 255,
        },
    ]
}

#[test]
fn known_ids_decode_to_what_their_services_say_and_encode_back() {
    for Known { layout, id, unix_ms, parts, sequence } in known() {
        let id = Id::from_u64(id);
        let decoded = id.parts(&layout).unwrap();
        assert_eq!(layout.unix_ms(decoded.tick), unix_ms, "{layout}");
        assert_eq!(layout.split_worker(decoded.worker).collect::<Vec<_>>(), parts, "{layout}");
        assert_eq!(decoded.sequence, sequence, "{layout}");
        assert_eq!(layout.encode(decoded), Ok(id), "{layout}");
        assert_eq!(layout.join_worker(parts.iter().copied()), Ok(decoded.worker), "{layout}");
    }
}

#[test]
fn the_twitter_example_is_of_the_second_its_documentation_says() {
    let parts = Layout::TWITTER.decode(Id::from_u64(1_050_118_621_198_921_728)).unwrap();
    let unix_ms = Layout::TWITTER.unix_ms(parts.tick);
    let instant = rfc3339::Instant::from_unix_ms(unix_ms.cast_signed());
    assert_eq!(instant.to_string(), "2018-10-10T20:19:24.211Z");
}

#[test]
fn ids_of_the_sonyflake_crate_decode_as_it_decodes_them() {
    let machine = 0xbeef;
    let peer = sonyflake::Sonyflake::builder().machine_id(&|| Ok(machine)).finalize().unwrap();
    for _ in 0..300 {
        let theirs = peer.next_id().unwrap();
        let expected = sonyflake::decompose(theirs);
        let id = Id::from_u64(theirs.to_u64());
        let ours = id.parts(&Layout::SONYFLAKE).unwrap();
        let expected =
            Parts { tick: expected.time, worker: expected.machine_id, sequence: expected.sequence };
        assert_eq!(ours, expected);
        assert_eq!(ours.worker, u64::from(machine));
        assert_eq!(Layout::SONYFLAKE.encode(ours), Ok(id));
    }
}

#[test]
fn every_preset_has_the_bits_and_epoch_it_is_known_for() {
    let text: Vec<String> =
        PRESETS.iter().map(|(name, layout)| format!("{name} {layout}")).collect();
    assert_eq!(
        text,
        [
            "frazil time:41 worker:10 sequence:12 @2024-01-01T00:00:00Z tick:1ms",
            "twitter time:41 datacenter:5 worker:5 sequence:12 @2010-11-04T01:42:54.657Z tick:1ms",
            "discord time:42 worker:5 process:5 sequence:12 @2015-01-01T00:00:00Z tick:1ms",
            "instagram time:41 shard:13 sequence:10 @2011-08-24T21:07:01.721Z tick:1ms",
            "sonyflake time:39 sequence:8 machine:16 @2014-09-01T00:00:00Z tick:10ms",
            "mastodon time:48 sequence:16 @1970-01-01T00:00:00Z tick:1ms",
            "js53 time:41 worker:4 sequence:8 @2024-01-01T00:00:00Z tick:1ms",
        ]
    );
}
