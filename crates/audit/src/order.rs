//! Whether IDs of a stream ascend.

use frazil_id::Id;

/// Watches one stream: each ID must be above the one before.
///
/// ```
/// use frazil_audit::Order;
/// use frazil_id::Id;
///
/// let mut order = Order::default();
/// for (line, id) in [(1, 5), (2, 9), (3, 9), (4, 7)] {
///     order.check(Id::from_u64(id), line);
/// }
/// assert_eq!(order.breaks(), 2);
/// assert_eq!(order.first_break().map(|first| (first.before.at, first.after.at)), Some((2, 3)));
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Order {
    last: Option<Sighting>,
    breaks: u64,
    first_break: Option<Break>,
}

/// An ID and where in its stream it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sighting {
    /// The ID.
    pub id: Id,
    /// The line, or whatever counts the positions of the stream.
    pub at: u64,
}

/// Two neighbours of a stream that do not ascend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Break {
    /// The one that came first.
    pub before: Sighting,
    /// The one behind it, which is not above.
    pub after: Sighting,
}

impl Order {
    /// Takes the next ID and its position; whether it is above the one before.
    #[inline]
    pub fn check(&mut self, id: Id, at: u64) -> bool {
        let after = Sighting { id, at };
        match self.last.replace(after) {
            Some(before) if before.id >= id => {
                self.breaks += 1;
                self.first_break.get_or_insert(Break { before, after });
                false
            }
            _ => true,
        }
    }

    /// How often an ID was not above the one before.
    #[must_use]
    pub const fn breaks(&self) -> u64 {
        self.breaks
    }

    /// The first of those.
    #[must_use]
    pub const fn first_break(&self) -> Option<Break> {
        self.first_break
    }
}
