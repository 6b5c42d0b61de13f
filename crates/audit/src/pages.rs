//! The pages that were ever touched.

use std::collections::HashMap;

use crate::page::Page;

/// Pages that are found without hashing: one for each of some hundred workers that take turns.
const RECENT: usize = 256;
/// The number of no page: a page has thousands of keys, so its number has fewer than 64 bits.
const NO_PAGE: u64 = u64::MAX;

/// Pages by their numbers.
#[derive(Clone, Debug)]
pub(crate) struct Pages {
    pages: Vec<Page>,
    /// Where a page is. The hash is seeded: who chooses IDs cannot choose where they collide.
    places: HashMap<u64, u32>,
    /// The page that was last used of those with the same short hash.
    recent: Box<[(u64, u32); RECENT]>,
}

impl Pages {
    pub(crate) fn new() -> Self {
        let recent = Box::new([(NO_PAGE, 0); RECENT]);
        Self { pages: Vec::new(), places: HashMap::new(), recent }
    }

    /// A page, made if it is new.
    #[inline]
    pub(crate) fn page_mut(&mut self, number: u64) -> &mut Page {
        let (known, place) = self.recent[short_hash(number)];
        let place = if known == number { place } else { self.look_up(number) };
        &mut self.pages[place as usize]
    }

    #[inline(never)]
    fn look_up(&mut self, number: u64) -> u32 {
        let place = *self.places.entry(number).or_insert_with(|| {
            self.pages.push(Page::new());
            u32::try_from(self.pages.len() - 1).expect("four billion pages are more than fit")
        });
        self.recent[short_hash(number)] = (number, place);
        place
    }

    pub(crate) fn page(&self, number: u64) -> Option<&Page> {
        self.places.get(&number).map(|place| &self.pages[*place as usize])
    }

    /// All pages, by their numbers.
    pub(crate) fn sorted(&self) -> impl Iterator<Item = (u64, &Page)> {
        let mut places: Vec<(u64, u32)> =
            self.places.iter().map(|(number, place)| (*number, *place)).collect();
        places.sort_unstable();
        places.into_iter().map(|(number, place)| (number, &self.pages[place as usize]))
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        // A table of the standard library has a byte for each bucket, and one in eight stays empty.
        let buckets = (self.places.capacity() * 8 / 7).next_power_of_two();
        self.pages.iter().map(Page::memory_bytes).sum::<usize>()
            + self.pages.capacity() * size_of::<Page>()
            + buckets * (size_of::<(u64, u32)>() + 1)
            + size_of::<[(u64, u32); RECENT]>()
    }
}

/// Spreads neighbouring numbers, and numbers that differ in the worker alone.
#[inline]
const fn short_hash(number: u64) -> usize {
    const { assert!(RECENT == 256) };
    (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as usize
}
