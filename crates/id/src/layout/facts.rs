//! The facts about a layout: what it holds, how long it lasts, and its fingerprint.

use super::Layout;

const MS_PER_DAY: u64 = 86_400_000;

impl Layout {
    /// The highest tick that fits the time field.
    #[must_use]
    pub const fn last_tick(&self) -> u64 {
        ones(self.time_bits)
    }

    /// The highest worker number.
    #[must_use]
    pub const fn last_worker(&self) -> u64 {
        ones(self.worker_bits)
    }

    /// The highest sequence number.
    #[must_use]
    pub const fn last_sequence(&self) -> u64 {
        ones(self.sequence_bits)
    }

    /// How many workers can issue side by side.
    #[must_use]
    pub const fn workers(&self) -> u64 {
        self.last_worker().saturating_add(1)
    }

    /// How many IDs one worker can issue in a tick.
    #[must_use]
    pub const fn ids_per_tick(&self) -> u64 {
        self.last_sequence().saturating_add(1)
    }

    /// How many IDs one worker can issue in a second, rounded down.
    #[must_use]
    pub const fn ids_per_second(&self) -> u64 {
        let ids = self.ids_per_tick() as u128 * 1000 / self.tick_ms as u128;
        if ids > u64::MAX as u128 {
            return u64::MAX;
        }
        #[expect(clippy::cast_possible_truncation, reason = "compared above")]
        let ids = ids as u64;
        ids
    }

    /// The last millisecond that an ID can carry, in Unix milliseconds.
    #[must_use]
    pub const fn last_instant_ms(&self) -> u64 {
        self.epoch_ms + (self.last_tick() + 1) * self.tick_ms as u64 - 1
    }

    /// Whole days from `unix_ms` to the last instant; 0 when it has passed.
    #[must_use]
    pub const fn days_left(&self, unix_ms: u64) -> u64 {
        self.last_instant_ms().saturating_sub(unix_ms) / MS_PER_DAY
    }

    /// Whether every ID is a positive `i64`, as databases want it.
    #[must_use]
    pub const fn fits_i64(&self) -> bool {
        self.bits() <= 63
    }

    /// Whether every ID is below 2^53, where JavaScript numbers are exact.
    #[must_use]
    pub const fn fits_js_number(&self) -> bool {
        self.bits() <= 53
    }

    /// A stable hash of everything that decides which ID means what. Names do not: a worker that
    /// is split for display keeps its fingerprint.
    #[must_use]
    pub fn fingerprint(&self) -> u64 {
        let facts = [
            self.epoch_ms,
            u64::from(self.tick_ms),
            u64::from(self.time_bits),
            u64::from(self.worker_bits),
            u64::from(self.sequence_bits),
            u64::from(self.worker_shift()),
        ];
        facts
            .iter()
            .flat_map(|fact| fact.to_le_bytes())
            .fold(FNV_OFFSET, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(FNV_PRIME))
    }
}

// FNV-1a: short, fixed for ever and good enough to tell two configurations apart. It guards
// against mistakes, not against somebody who wants two layouts to collide.
const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0000_0100_0000_01b3;

/// The number whose lowest `bits` bits are set.
const fn ones(bits: u32) -> u64 {
    match bits {
        0 => 0,
        _ => u64::MAX >> (64 - bits),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fingerprint_of_every_preset_is_fixed_for_ever() {
        let known = [
            ("frazil", 0xf898_a669_f340_f757_u64),
            ("twitter", 0xadf6_452a_ed1d_0d09_u64),
            ("discord", 0xc06f_e5aa_e6e5_0c05_u64),
            ("instagram", 0x5dea_6bd0_2a7b_b4db_u64),
            ("sonyflake", 0x8c42_3b7d_c61f_398b_u64),
            ("mastodon", 0x026e_2add_b5d5_7274_u64),
            ("js53", 0x05c0_47ed_0c4f_2299_u64),
        ];
        for ((name, layout), (known_name, fingerprint)) in crate::PRESETS.iter().zip(known) {
            assert_eq!(*name, known_name);
            assert_eq!(layout.fingerprint(), fingerprint, "{name} {:#018x}", layout.fingerprint());
        }
    }

    #[test]
    fn splitting_the_worker_keeps_the_fingerprint_and_moving_a_field_changes_it() {
        let plain = Layout::new(&[("time", 41), ("worker", 10), ("sequence", 12)], 5, 1).unwrap();
        let split =
            Layout::new(&[("time", 41), ("region", 3), ("node", 7), ("sequence", 12)], 5, 1);
        let moved = Layout::new(&[("time", 41), ("sequence", 12), ("worker", 10)], 5, 1).unwrap();
        assert_eq!(plain.fingerprint(), split.unwrap().fingerprint());
        assert_ne!(plain.fingerprint(), moved.fingerprint());
    }

    #[test]
    fn facts_of_the_default_layout() {
        let layout = Layout::FRAZIL;
        assert_eq!(layout.workers(), 1024);
        assert_eq!(layout.ids_per_tick(), 4096);
        assert_eq!(layout.ids_per_second(), 4_096_000);
        assert_eq!(layout.last_instant_ms(), 1_704_067_200_000 + (1 << 41) - 1);
        assert_eq!(layout.days_left(layout.epoch_ms()), 25_451);
        assert_eq!(layout.days_left(u64::MAX), 0);
        assert!(layout.fits_i64() && !layout.fits_js_number());
        assert!(Layout::JS53.fits_js_number() && !Layout::DISCORD.fits_i64());
        assert_eq!(Layout::SONYFLAKE.ids_per_second(), 25_600);
        let coarse = Layout::new(&[("time", 8), ("sequence", 55)], 0, 86_400_000).unwrap();
        assert_eq!(coarse.ids_per_second(), 416_999_965_497);
    }
}
