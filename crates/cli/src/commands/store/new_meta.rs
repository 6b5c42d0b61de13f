//! The meta record of a namespace that an operator creates.

use std::time::Duration;

use frazil::coord::rules::WINDOW_MAX_MS;
use frazil::coord::time::unix_ms;
use frazil::coord::{FORMAT, Meta, Nonce, StoreUrl, Timing, Token};
use frazil::{fixed_timing, fixed_worker};
use frazil_id::Layout;

use crate::args::WorkersArg;
use crate::output::{Exit, Failure};

/// What is to be created.
pub(super) struct RequestedMeta<'a> {
    pub(super) url: &'a StoreUrl,
    pub(super) layout: &'a Layout,
    pub(super) workers: WorkersArg,
    pub(super) window: Option<Duration>,
}

impl RequestedMeta<'_> {
    pub(super) fn meta(&self) -> Result<Meta, Failure> {
        let (first_worker, last_worker) = self.range()?;
        let window = self.window()?;
        let incarnation = Nonce::mint().map_err(|error| {
            Failure::new(Exit::Unavailable, format_args!("no random bits: {error}"))
        })?;
        Ok(Meta {
            format: FORMAT,
            incarnation,
            layout: frazil::layout_mark(self.layout),
            first_worker,
            last_worker,
            window_ms: millis(window),
            quarantine: 0,
            token_floor: Token::default(),
            created: unix_ms(),
        })
    }

    fn range(&self) -> Result<(u32, u32), Failure> {
        let last = u32::try_from(self.layout.last_worker()).unwrap_or(u32::MAX);
        let fixed = fixed_worker(self.url).map(|number| (number, number));
        let range = match (fixed, self.workers.workers) {
            (Some(fixed), Some(wanted)) if fixed != wanted => {
                let why = format!(
                    "static:{} has the worker {} alone: leave out --workers",
                    fixed.0, fixed.0
                );
                return Err(Failure::usage(why));
            }
            (fixed, wanted) => fixed.or(wanted).unwrap_or((0, last)),
        };
        if range.1 > last {
            let why = format!("worker {} does not fit: the layout has 0 to {last}", range.1);
            return Err(Failure::usage(why));
        }
        Ok(range)
    }

    fn window(&self) -> Result<Duration, Failure> {
        let fixed = fixed_worker(self.url).map(|_| fixed_timing(self.layout).outage_budget);
        let Some(window) = self.window else {
            return Ok(fixed.unwrap_or(Timing::default().outage_budget));
        };
        if let Some(fixed) = fixed.filter(|fixed| *fixed != window) {
            let why = format!(
                "the window of a fixed worker is {} s with this layout: leave out --window",
                fixed.as_secs()
            );
            return Err(Failure::usage(why));
        }
        let least = Timing::default().ttl * 3;
        if fixed.is_none() && window < least {
            let why =
                format!("a window is at least {} s: nodes must survive that", least.as_secs());
            return Err(Failure::usage(why));
        }
        if millis(window) > WINDOW_MAX_MS {
            let why = format!("a window is at most {} minutes", WINDOW_MAX_MS / 60_000);
            return Err(Failure::usage(why));
        }
        Ok(window)
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
