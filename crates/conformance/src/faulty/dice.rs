//! A random number generator whose draws can be repeated.

/// A generator of numbers from a seed (splitmix64).
#[derive(Debug)]
pub(super) struct Dice(pub(super) u64);

impl Dice {
    /// Whether something happens that does so this often of a thousand times.
    pub(super) fn happens(&mut self, per_thousand: u32) -> bool {
        self.below(1000) < u64::from(per_thousand)
    }

    /// A number under the limit, which is small, so that the remainder is as good as fair.
    pub(super) fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_of_a_seed_are_those_of_splitmix64() {
        let mut dice = Dice(1_234_567);
        let numbers = [dice.next(), dice.next(), dice.next()];
        assert_eq!(
            numbers,
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        );
    }
}
