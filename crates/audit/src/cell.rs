//! Up to 4,096 neighbouring numbers: which of them were seen, in as little room as will do.

use crate::shape::CELL_BITS_MAX;
use crate::slots::Slots;

/// Items of a list's slot: its length, then the numbers, sorted. It is 64 bytes.
const LIST_SLOT: usize = 32;
const LIST_MAX: usize = LIST_SLOT - 1;
/// Bitmaps of cells up to this size are no larger than a list, so there are no lists.
const SMALL_CELL_BITS: u32 = 9;

/// One word that tells what is in a cell, or where that is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cell(u32);

/// What a cell's word says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// None.
    Empty,
    /// All numbers from the first to the last, and no other.
    Run(Span),
    /// A slot with a sorted list.
    List(u32),
    /// A slot with a bitmap.
    Bitmap(u32),
}

/// Numbers from the first to the last, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) first: u16,
    pub(crate) last: u16,
}

impl Span {
    pub(crate) const fn one(at: u16) -> Self {
        Self { first: at, last: at }
    }

    pub(crate) const fn len(self) -> u64 {
        (self.last - self.first) as u64 + 1
    }

    /// Whether the two overlap or touch, so that together they are one span.
    const fn joins(self, other: Self) -> bool {
        self.first <= other.last + 1 && other.first <= self.last + 1
    }

    fn join(self, other: Self) -> Self {
        Self { first: self.first.min(other.first), last: self.last.max(other.last) }
    }
}

impl Cell {
    pub(crate) const EMPTY: Self = Self(0);
    const RUN: u32 = 1 << 30;
    const LIST: u32 = 2 << 30;
    const BITMAP: u32 = 3 << 30;
    const PAYLOAD: u32 = Self::RUN - 1;

    #[inline]
    const fn run(span: Span) -> Self {
        Self(Self::RUN | (span.first as u32) << CELL_BITS_MAX | span.last as u32)
    }

    #[inline]
    pub(crate) const fn form(self) -> Form {
        const AT: u32 = (1 << CELL_BITS_MAX) - 1;
        let payload = self.0 & Self::PAYLOAD;
        match self.0 & !Self::PAYLOAD {
            Self::RUN => Form::Run(Span {
                first: (payload >> CELL_BITS_MAX & AT) as u16,
                last: (payload & AT) as u16,
            }),
            Self::LIST => Form::List(payload),
            Self::BITMAP => Form::Bitmap(payload),
            _ => Form::Empty,
        }
    }
}

/// What the words of all cells refer to.
#[derive(Clone, Debug)]
pub(crate) struct Cells {
    has_lists: bool,
    lists: Slots<u16>,
    /// A slot is a [`Tally`], then the bits.
    bitmaps: Slots<u64>,
}

impl Cells {
    /// For cells of `1 << cell_bits` numbers.
    pub(crate) const fn new(cell_bits: u32) -> Self {
        Self {
            has_lists: cell_bits > SMALL_CELL_BITS,
            lists: Slots::new(LIST_SLOT),
            bitmaps: Slots::new(1 + (1 << (cell_bits - 6))),
        }
    }

    /// Adds one number; whether it is new.
    #[inline]
    pub(crate) fn insert(&mut self, cell: &mut Cell, at: u16) -> bool {
        match cell.form() {
            Form::Run(span) if at == span.last + 1 => {
                *cell = Cell::run(Span { last: at, ..span });
                true
            }
            Form::Run(span) if span.first <= at && at <= span.last => false,
            Form::Bitmap(slot) => self.insert_into_bitmap(cell, slot, Span::one(at)) > 0,
            _ => self.insert_span(cell, Span::one(at)) > 0,
        }
    }

    /// Adds a span; how many of it are new.
    pub(crate) fn insert_span(&mut self, cell: &mut Cell, span: Span) -> u64 {
        match cell.form() {
            Form::Empty => {
                *cell = Cell::run(span);
                span.len()
            }
            Form::Run(run) if run.joins(span) => {
                let joined = run.join(span);
                *cell = Cell::run(joined);
                joined.len() - run.len()
            }
            Form::Run(run) => {
                self.hold(cell, &[run, span]);
                span.len()
            }
            Form::List(slot) => self.insert_into_list(cell, slot, span),
            Form::Bitmap(slot) => self.insert_into_bitmap(cell, slot, span),
        }
    }

    /// Makes a list or a bitmap of spans that do not touch.
    fn hold(&mut self, cell: &mut Cell, spans: &[Span]) {
        let count: u64 = spans.iter().map(|span| span.len()).sum();
        if self.has_lists && count <= LIST_MAX as u64 && !self.lists.is_full() {
            let slot = self.lists.take();
            let items = self.lists.at_mut(slot);
            for span in spans {
                let from = list(items).partition_point(|at| *at < span.first);
                insert_sorted(items, from, 0, *span);
            }
            *cell = Cell(Cell::LIST | slot);
        } else {
            let slot = self.bitmaps.take();
            for span in spans {
                set_bits(self.bitmaps.at_mut(slot), *span);
            }
            *cell = Cell(Cell::BITMAP | slot);
        }
    }

    fn insert_into_list(&mut self, cell: &mut Cell, slot: u32, span: Span) -> u64 {
        let known = list(self.lists.at(slot));
        let from = known.partition_point(|at| *at < span.first);
        let inside = known[from..].iter().take_while(|at| **at <= span.last).count();
        let added = span.len() - inside as u64;
        let count = known.len() as u64 + added;
        if count > LIST_MAX as u64 {
            let bitmap = self.bitmap_of_list(slot);
            *cell = Cell(Cell::BITMAP | bitmap);
            return self.insert_into_bitmap(cell, bitmap, span);
        }
        if added > 0 {
            let items = self.lists.at_mut(slot);
            insert_sorted(items, from, inside, span);
            if let [first, .., last] = *list(items)
                && (Span { first, last }).len() == count
            {
                self.lists.give_back(slot);
                *cell = Cell::run(Span { first, last });
            }
        }
        added
    }

    fn bitmap_of_list(&mut self, slot: u32) -> u32 {
        let bitmap = self.bitmaps.take();
        for at in list(self.lists.at(slot)) {
            set_bits(self.bitmaps.at_mut(bitmap), Span::one(*at));
        }
        self.lists.give_back(slot);
        bitmap
    }

    /// Folds the bitmap back into a run as soon as it is one.
    #[inline]
    fn insert_into_bitmap(&mut self, cell: &mut Cell, slot: u32, span: Span) -> u64 {
        let bitmap = self.bitmaps.at_mut(slot);
        let added = set_bits(bitmap, span);
        let tally = Tally::read(bitmap);
        if added > 0 && tally.count == tally.span.len() {
            self.bitmaps.give_back(slot);
            *cell = Cell::run(tally.span);
        }
        added
    }

    pub(crate) fn contains(&self, cell: Cell, at: u16) -> bool {
        match cell.form() {
            Form::Empty => false,
            Form::Run(span) => span.first <= at && at <= span.last,
            Form::List(slot) => list(self.lists.at(slot)).contains(&at),
            Form::Bitmap(slot) => {
                self.bitmaps.at(slot)[1 + usize::from(at / 64)] >> (at % 64) & 1 == 1
            }
        }
    }

    /// How many of the numbers of a span are there.
    pub(crate) fn count(&self, cell: Cell, within: Span) -> u64 {
        let range = within.first..=within.last;
        match cell.form() {
            Form::Empty => 0,
            Form::Run(span) => {
                let (first, last) = (span.first.max(within.first), span.last.min(within.last));
                if first <= last { Span { first, last }.len() } else { 0 }
            }
            Form::List(slot) => {
                list(self.lists.at(slot)).iter().filter(|at| range.contains(*at)).count() as u64
            }
            Form::Bitmap(slot) => {
                let bits = &self.bitmaps.at(slot)[1..];
                masks(within).map(|(at, mask)| u64::from((bits[at] & mask).count_ones())).sum()
            }
        }
    }

    pub(crate) const fn memory_bytes(&self) -> usize {
        self.lists.memory_bytes() + self.bitmaps.memory_bytes()
    }
}

/// The numbers in a list's slot.
fn list(slot: &[u16]) -> &[u16] {
    &slot[1..=usize::from(slot[0])]
}

/// Puts a span into a list that has room for it, in place of those of its numbers that are there:
/// `inside` of them, from the place `from` on.
fn insert_sorted(slot: &mut [u16], from: usize, inside: usize, span: Span) {
    let len = usize::from(slot[0]);
    let behind = (1 + from..).zip(span.first..=span.last);
    let added = usize::from(span.last - span.first) + 1 - inside;
    slot.copy_within(1 + from + inside..=len, 1 + from + inside + added);
    for (place, at) in behind {
        slot[place] = at;
    }
    slot[0] += u16::try_from(added).expect("a list is short");
}

/// How many numbers a bitmap has, and between which two they lie. It tells a run without a look at
/// the bits.
#[derive(Clone, Copy)]
struct Tally {
    count: u64,
    span: Span,
}

impl Tally {
    #[expect(clippy::cast_possible_truncation, reason = "the three fields are 16 bits each")]
    const fn read(bitmap: &[u64]) -> Self {
        let packed = bitmap[0];
        Self {
            count: packed & 0xffff,
            span: Span { first: (packed >> 16) as u16, last: (packed >> 32) as u16 },
        }
    }

    const fn write(self, bitmap: &mut [u64]) {
        bitmap[0] = self.count | (self.span.first as u64) << 16 | (self.span.last as u64) << 32;
    }
}

/// Sets the bits of a span; how many were not set.
#[inline]
fn set_bits(bitmap: &mut [u64], span: Span) -> u64 {
    let mut added = 0;
    for (at, mask) in masks(span) {
        let word = &mut bitmap[1 + at];
        added += u64::from((mask & !*word).count_ones());
        *word |= mask;
    }
    let tally = Tally::read(bitmap);
    let joined = if tally.count == 0 { span } else { tally.span.join(span) };
    Tally { count: tally.count + added, span: joined }.write(bitmap);
    added
}

/// The words of a bitmap that a span touches, and which bits of each.
#[inline]
fn masks(span: Span) -> impl Iterator<Item = (usize, u64)> {
    let (first_word, last_word) = (usize::from(span.first / 64), usize::from(span.last / 64));
    (first_word..=last_word).map(move |at| {
        let from = if at == first_word { span.first % 64 } else { 0 };
        let to = if at == last_word { span.last % 64 } else { 63 };
        (at, u64::MAX << from & u64::MAX >> (63 - to))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(first: u16, last: u16) -> Span {
        Span { first, last }
    }

    #[test]
    fn a_run_grows_at_both_ends_and_needs_no_slot() {
        let mut cells = Cells::new(12);
        let mut cell = Cell::EMPTY;
        for at in [5, 6, 4, 7, 3] {
            assert!(cells.insert(&mut cell, at));
            assert!(!cells.insert(&mut cell, at));
        }
        assert_eq!(cell.form(), Form::Run(span(3, 7)));
        assert_eq!(cells.memory_bytes(), 0);
    }

    #[test]
    fn a_gap_makes_a_list_many_make_a_bitmap_and_a_closed_gap_makes_a_run_again() {
        let mut cells = Cells::new(12);
        let mut cell = Cell::EMPTY;
        for at in (0..4096).step_by(2) {
            assert!(cells.insert(&mut cell, at));
            let form = cell.form();
            match at / 2 + 1 {
                1 => assert_eq!(form, Form::Run(Span::one(0))),
                2..=31 => assert!(matches!(form, Form::List(_)), "{at} {form:?}"),
                _ => assert!(matches!(form, Form::Bitmap(_)), "{at} {form:?}"),
            }
        }
        assert_eq!((cells.lists.in_use(), cells.bitmaps.in_use()), (0, 1));
        for at in (1..4096).step_by(2) {
            assert!(!cells.contains(cell, at));
            assert!(cells.insert(&mut cell, at));
        }
        assert_eq!(cell.form(), Form::Run(span(0, 4095)));
        assert_eq!((cells.lists.in_use(), cells.bitmaps.in_use()), (0, 0));
    }

    #[test]
    fn a_list_folds_into_a_run_too() {
        let mut cells = Cells::new(12);
        let mut cell = Cell::EMPTY;
        for at in [10, 12, 14, 13, 11] {
            assert!(cells.insert(&mut cell, at));
        }
        assert_eq!(cell.form(), Form::Run(span(10, 14)));
        assert_eq!(cells.lists.in_use(), 0);
    }

    #[test]
    fn a_slot_that_is_used_again_remembers_nothing() {
        let mut cells = Cells::new(7);
        let mut first = Cell::EMPTY;
        for at in [0, 127] {
            cells.insert(&mut first, at);
        }
        assert_eq!(cells.insert_span(&mut first, span(0, 127)), 126);
        let mut second = Cell::EMPTY;
        for at in [3, 90] {
            assert!(cells.insert(&mut second, at));
        }
        assert_eq!(cells.bitmaps.in_use(), 1);
        assert_eq!(cells.count(second, span(0, 127)), 2);
    }

    #[test]
    fn spans_are_counted_where_they_overlap_what_is_there() {
        for bits in [7, 12] {
            let mut cells = Cells::new(bits);
            let mut cell = Cell::EMPTY;
            assert_eq!(cells.insert_span(&mut cell, span(10, 20)), 11);
            assert_eq!(cells.insert_span(&mut cell, span(40, 70)), 31);
            assert_eq!(cells.insert_span(&mut cell, span(15, 45)), 19, "{bits}");
            assert_eq!(cell.form(), Form::Run(span(10, 70)));
            assert_eq!(cells.insert_span(&mut cell, span(0, 127)), 67);
        }
    }
}
