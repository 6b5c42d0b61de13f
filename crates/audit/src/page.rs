//! The cells of a stretch of one worker's time.

use crate::cell::Cell;
use crate::shape::PAGE_BITS;

/// Cells in a page.
const CELLS: usize = 1 << PAGE_BITS;
/// Cells beyond which a page has a word for each cell there may be. Below, a cell that is used
/// takes eight bytes and one that is not takes none: whoever sends one ID to each page must not
/// get four thousand bytes for it.
const SPARSE_MAX: usize = 64;

/// The cells of 1,024 neighbours that are not empty.
#[derive(Clone, Debug)]
pub(crate) enum Page {
    /// Those in use with their numbers, sorted.
    Sparse(Vec<(u16, Cell)>),
    /// All, by their numbers.
    Dense(Box<[Cell; CELLS]>),
}

impl Page {
    pub(crate) const fn new() -> Self {
        Self::Sparse(Vec::new())
    }

    /// A cell, to be filled.
    #[inline]
    pub(crate) fn cell_mut(&mut self, number: u16) -> &mut Cell {
        if let Self::Sparse(cells) = self
            && cells.len() == SPARSE_MAX
        {
            *self = Self::Dense(spread(cells));
        }
        match self {
            Self::Dense(cells) => &mut cells[usize::from(number) % CELLS],
            Self::Sparse(cells) => sparse_mut(cells, number),
        }
    }

    pub(crate) fn cell(&self, number: u16) -> Cell {
        match self {
            Self::Dense(cells) => cells[usize::from(number) % CELLS],
            Self::Sparse(cells) => match cells.binary_search_by_key(&number, |cell| cell.0) {
                Ok(at) => cells[at].1,
                Err(_) => Cell::EMPTY,
            },
        }
    }

    /// The cells that are not empty, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u16, Cell)> {
        let (sparse, dense): (&[_], &[Cell]) = match self {
            Self::Sparse(cells) => (cells, &[]),
            Self::Dense(cells) => (&[], &cells[..]),
        };
        let dense = (0..).zip(dense.iter().copied()).filter(|(_, cell)| *cell != Cell::EMPTY);
        sparse.iter().copied().chain(dense)
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        match self {
            Self::Sparse(cells) => cells.capacity() * size_of::<(u16, Cell)>(),
            Self::Dense(_) => size_of::<[Cell; CELLS]>(),
        }
    }
}

/// Most IDs belong to the last cell or to a new one behind it.
fn sparse_mut(cells: &mut Vec<(u16, Cell)>, number: u16) -> &mut Cell {
    let place = match cells.last() {
        Some(last) if last.0 == number => cells.len() - 1,
        Some(last) if last.0 > number => {
            cells.binary_search_by_key(&number, |cell| cell.0).unwrap_or_else(|place| place)
        }
        _ => cells.len(),
    };
    if cells.get(place).is_none_or(|cell| cell.0 != number) {
        if cells.is_empty() {
            // What the first push would take is room for four.
            cells.reserve_exact(1);
        }
        cells.insert(place, (number, Cell::EMPTY));
    }
    &mut cells[place].1
}

fn spread(sparse: &[(u16, Cell)]) -> Box<[Cell; CELLS]> {
    let mut cells = Box::new([Cell::EMPTY; CELLS]);
    for (number, cell) in sparse {
        cells[usize::from(*number) % CELLS] = *cell;
    }
    cells
}
