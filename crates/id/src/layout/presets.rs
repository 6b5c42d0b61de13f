//! The layouts that have a name.

use core::fmt;

use super::Layout;

/// 2024-01-01T00:00:00Z.
const FRAZIL_EPOCH_MS: u64 = 1_704_067_200_000;

impl Layout {
    /// The default: 69 years from 2024, 1,024 workers, 4,096 IDs a millisecond.
    pub const FRAZIL: Self =
        preset(&[("time", 41), ("worker", 10), ("sequence", 12)], FRAZIL_EPOCH_MS, 1);

    /// Posts, users and messages of Twitter since November 2010.
    pub const TWITTER: Self = preset(
        &[("time", 41), ("datacenter", 5), ("worker", 5), ("sequence", 12)],
        1_288_834_974_657,
        1,
    );

    /// Everything Discord names.
    pub const DISCORD: Self = preset(
        &[("time", 42), ("worker", 5), ("process", 5), ("sequence", 12)],
        1_420_070_400_000,
        1,
    );

    /// Media of Instagram; the worker is a logical shard.
    pub const INSTAGRAM: Self =
        preset(&[("time", 41), ("shard", 13), ("sequence", 10)], 1_314_220_021_721, 1);

    /// Sonyflake with its default settings: 174 years in steps of 10 ms, and the sequence above
    /// the machine.
    pub const SONYFLAKE: Self =
        preset(&[("time", 39), ("sequence", 8), ("machine", 16)], 1_409_529_600_000, 10);

    /// Statuses of Mastodon: a time and 16 bits that only look like a sequence, so IDs can be
    /// decoded but not issued.
    pub const MASTODON: Self = preset(&[("time", 48), ("sequence", 16)], 0, 1);

    /// IDs that a JavaScript number holds exactly: 16 workers, 256 IDs a millisecond.
    pub const JS53: Self =
        preset(&[("time", 41), ("worker", 4), ("sequence", 8)], FRAZIL_EPOCH_MS, 1);
}

/// Every named layout, the default first.
pub const PRESETS: &[(&str, Layout)] = &[
    ("frazil", Layout::FRAZIL),
    ("twitter", Layout::TWITTER),
    ("discord", Layout::DISCORD),
    ("instagram", Layout::INSTAGRAM),
    ("sonyflake", Layout::SONYFLAKE),
    ("mastodon", Layout::MASTODON),
    ("js53", Layout::JS53),
];

pub(super) fn write_names(f: &mut fmt::Formatter<'_>) -> fmt::Result {
    for (name, _) in PRESETS {
        write!(f, "{name}, ")?;
    }
    write!(f, "or a text such as `{}`", Layout::FRAZIL)
}

const fn preset(fields: &[(&str, u32)], epoch_ms: u64, tick_ms: u32) -> Layout {
    match Layout::new(fields, epoch_ms, tick_ms) {
        Ok(layout) => layout,
        // Evaluated by the compiler only: a preset that cannot work does not build.
        #[expect(clippy::panic, reason = "a compile-time check")]
        Err(_) => panic!("a preset breaks a rule of Layout::new"),
    }
}
