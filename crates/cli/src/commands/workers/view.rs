//! A worker's slot as a user sees it.

use std::collections::BTreeMap;

use frazil::coord::UnixMs;
use frazil::coord::internal::{SlotState, WorkerView};
use serde::Serialize;

use crate::words::instant;

/// One worker.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct View {
    pub(crate) worker: u32,
    pub(crate) state: SlotState,
    /// Who holds it or held it last.
    pub(crate) holder: Option<String>,
    pub(crate) host: Option<String>,
    /// A string: tokens exceed what a JSON number holds everywhere.
    pub(crate) token: Option<String>,
    pub(crate) floor_ms: Option<UnixMs>,
    pub(crate) horizon_ms: Option<UnixMs>,
    /// None also for one that no ID was ever stamped with.
    pub(crate) horizon: Option<String>,
    /// How long its holder may go on, or others have to wait.
    pub(crate) seconds_left: f64,
    /// How long presence lasts without renewal, where the store counts that.
    pub(crate) expires_in_seconds: Option<f64>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) info: BTreeMap<String, String>,
}

impl View {
    pub(super) fn is_free(&self) -> bool {
        self.state == SlotState::Free
    }
}

impl From<WorkerView> for View {
    fn from(worker: WorkerView) -> Self {
        let WorkerView { number, state, record, left_ms, expires_in, .. } = worker;
        let horizon_ms = record.as_ref().map(|record| record.horizon);
        Self {
            worker: number,
            state,
            holder: record.as_ref().map(|record| record.holder.clone()),
            host: record.as_ref().and_then(|record| record.info.get("host").cloned()),
            token: record.as_ref().map(|record| record.token.to_string()),
            floor_ms: record.as_ref().map(|record| record.floor),
            horizon_ms,
            horizon: horizon_ms.filter(|horizon| *horizon > 0).map(instant),
            seconds_left: seconds(left_ms),
            expires_in_seconds: expires_in.map(|left| left.as_secs_f64()),
            info: record.map(|record| record.info).unwrap_or_default(),
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "shown to people, to the millisecond")]
fn seconds(ms: u64) -> f64 {
    ms as f64 / 1000.0
}
