//! IDs out of an answer: all that were asked for, or none.

use frazil_id::{Id, Layout};

/// Why an answer is not used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AnswerError {
    /// More or fewer than asked for.
    Length { bytes: usize, count: u32 },
    /// Not one larger than the one before.
    Order,
    /// Not of the layout that the servers have.
    Layout(Id),
}

/// The IDs of a body of big-endian 64-bit numbers.
pub(crate) fn from_bytes(
    body: &[u8],
    count: u32,
    layout: Option<&Layout>,
) -> Result<Vec<Id>, AnswerError> {
    if body.len() != count as usize * 8 {
        return Err(AnswerError::Length { bytes: body.len(), count });
    }
    let (words, _) = body.as_chunks::<8>();
    checked(words.iter().map(|word| Id::from_u64(u64::from_be_bytes(*word))).collect(), layout)
}

/// IDs that are in order and of the layout.
pub(crate) fn checked(ids: Vec<Id>, layout: Option<&Layout>) -> Result<Vec<Id>, AnswerError> {
    if !ids.is_sorted_by(|one, other| one < other) {
        return Err(AnswerError::Order);
    }
    // They are in order: if the last fits, all do.
    match (layout, ids.last()) {
        (Some(layout), Some(last)) if layout.decode(*last).is_err() => {
            Err(AnswerError::Layout(*last))
        }
        _ => Ok(ids),
    }
}

impl std::fmt::Display for AnswerError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Length { bytes, count } => {
                write!(f, "the answer to a request for {count} IDs has {bytes} bytes")
            }
            Self::Order => f.write_str("the IDs of an answer do not increase"),
            Self::Layout(id) => write!(f, "{id} is of another layout than the servers have"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(ids: &[u64]) -> Vec<u8> {
        ids.iter().flat_map(|id| id.to_be_bytes()).collect()
    }

    #[test]
    fn an_answer_is_used_whole_or_not_at_all() {
        let body = bytes(&[1, 2, 3]);
        let ids = from_bytes(&body, 3, None).unwrap();
        assert_eq!(ids, [1, 2, 3].map(Id::from_u64));
        for length in (0..body.len()).chain([body.len() + 1]) {
            let mut cut = body.clone();
            cut.resize(length, 0);
            assert!(
                matches!(from_bytes(&cut, 3, None), Err(AnswerError::Length { .. })),
                "{length}"
            );
        }
        assert_eq!(from_bytes(&bytes(&[1, 3, 3]), 3, None), Err(AnswerError::Order));
        assert_eq!(from_bytes(&bytes(&[2, 1]), 2, None), Err(AnswerError::Order));
        let layout = Layout::FRAZIL;
        assert!(from_bytes(&bytes(&[1, 1 << 62]), 2, Some(&layout)).is_ok());
        assert!(matches!(
            from_bytes(&bytes(&[1, 1 << 63]), 2, Some(&layout)),
            Err(AnswerError::Layout(_))
        ));
    }
}
