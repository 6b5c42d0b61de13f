//! Holding on and letting go.

use super::cell::{Cell, look, version_of_stat};
use super::claim::acknowledged;
use super::failure::Failure;
use super::session::{Deadline, Node};
use super::write::{ANY, Change, Changed, Stay, Writer};
use crate::lease::{Ask, Extended, Loss, Released, Tenure};
use crate::record::{Record, UnixMs, Version};
use crate::rules;
use crate::slot::Slot;
use crate::store::Put;

/// Raises the horizon and renews presence, also in a new session.
pub(super) async fn extend(
    writer: &Writer<'_>,
    tenure: &Tenure,
    ask: &Ask,
    deadline: Deadline,
) -> Result<Extended, Failure> {
    let mut sent = None;
    loop {
        let (meta, cell) = match look_at(writer, &tenure.slot, deadline).await {
            Ok(looked) => looked,
            Err(failure) => return Err(sent.unwrap_or(failure)),
        };
        let Some(record) = cell.known().filter(|_| meta.is_some()) else {
            return Ok(Extended::Lost(Loss::Vanished));
        };
        let record = match rules::extend(&record, tenure, ask) {
            Ok(record) => record,
            Err(loss) => return Ok(Extended::Lost(loss)),
        };
        let presence = Stay::Present(tenure.nonce);
        let change = Change { cell: &cell, record: &record, meta: Some(ANY), presence };
        match writer.change(&change, deadline).await {
            Ok(Changed::Done(stat)) => {
                let version = version_of_stat(&stat);
                let held = Tenure { version, horizon: record.horizon, ..tenure.clone() };
                return Ok(Extended::Held(acknowledged(held, &stat, writer)));
            }
            Ok(Changed::Conflict) => {}
            // It is as good to extend twice.
            Err(silent @ Failure::Silent(_)) => sent = Some(silent),
            Err(failure) => return Err(sent.unwrap_or(failure)),
        }
    }
}

/// Ends a tenure.
pub(super) async fn release(
    writer: &Writer<'_>,
    tenure: &Tenure,
    last: UnixMs,
    deadline: Deadline,
) -> Result<Released, Failure> {
    let mut sent = None;
    loop {
        let cell = match look_at(writer, &tenure.slot, deadline).await {
            Ok((_, cell)) => cell,
            Err(failure) => return Err(sent.unwrap_or(failure)),
        };
        let record = match cell.known().map(|record| rules::release(&record, tenure, last)) {
            Some(Ok(record)) => record,
            // An attempt that had no answer was carried out after all.
            Some(Err(Loss::Released)) if sent.is_some() => return Ok(Released::Done),
            Some(Err(_)) | None => return Ok(Released::NotHeld),
        };
        let change = Change { cell: &cell, record: &record, meta: None, presence: Stay::Absent };
        match writer.change(&change, deadline).await {
            Ok(Changed::Done(_)) => return Ok(Released::Done),
            Ok(Changed::Conflict) => {}
            Err(silent @ Failure::Silent(_)) => sent = Some(silent),
            Err(failure) => return Err(sent.unwrap_or(failure)),
        }
    }
}

/// Writes a record that nobody is present in.
pub(super) async fn put(
    writer: &Writer<'_>,
    slot: &Slot,
    expected: Version,
    record: &Record,
    deadline: Deadline,
) -> Result<Put, Failure> {
    loop {
        let (_, cell) = look_at(writer, slot, deadline).await?;
        if cell.version() != expected || cell.is_held() {
            return Ok(Put::Conflict);
        }
        let change = Change { cell: &cell, record, meta: None, presence: Stay::Absent };
        match writer.change(&change, deadline).await? {
            Changed::Done(stat) => return Ok(Put::Done(version_of_stat(&stat))),
            Changed::Conflict => {}
        }
    }
}

async fn look_at(
    writer: &Writer<'_>,
    slot: &Slot,
    deadline: Deadline,
) -> Result<(Option<Node>, Cell), Failure> {
    let slots = std::slice::from_ref(slot);
    let (meta, mut cells) = look(writer.session, writer.paths, slots, true, deadline).await?;
    let cell = cells.pop().ok_or_else(|| Failure::unavailable("the answer was cut short"))?;
    Ok((meta, cell))
}
