//! The cost of decoding many IDs at once, and how many may be.

use frazil_wire::{ApiError, Reason};

use crate::policy::access::Caller;
use crate::policy::keys::QuotaLeft;
use crate::policy::queue::Count;

/// So many IDs taken apart cost one ID of a key's quota: about as much work as issuing it.
const DECODED_PER_ID: usize = 100;

/// Checks that not too many IDs are taken apart at once.
pub(crate) fn check_count(count: usize, most: usize) -> Result<(), ApiError> {
    if count <= most {
        return Ok(());
    }
    let detail = format_args!("at most {most} IDs are taken apart at once");
    Err(ApiError::new(Reason::CountOutOfRange, detail))
}

/// Takes from the key's quota, if it has one, what so many IDs cost.
pub(crate) fn charge(caller: &Caller, count: usize) -> Result<Option<QuotaLeft>, ApiError> {
    let cost = u32::try_from(count.div_ceil(DECODED_PER_ID)).unwrap_or(u32::MAX);
    let charged = caller.charge(Count::Exactly(cost)).map_err(|error| {
        caller.count_refused(&error, 1);
        let detail =
            format!("{count} IDs to take apart cost {cost} of the quota: {}", error.detail);
        error.with_detail(detail)
    })?;
    Ok(charged.map(|(_, left)| left))
}
