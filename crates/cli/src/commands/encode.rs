//! `frazil encode`: put an ID together.

use frazil_id::Parts;
use frazil_wire::Decoded;

use crate::args::EncodeArgs;
use crate::output::{Data, Failure};

pub(crate) fn run(args: &EncodeArgs) -> Result<(), Failure> {
    let layout = &args.layout.layout;
    let tick = layout.tick_at(args.time).map_err(Failure::usage)?;
    let parts = Parts { tick, worker: worker(args)?, sequence: args.sequence };
    let id = layout.encode(parts).map_err(Failure::usage)?;
    let mut data = Data::new();
    if args.json {
        data.json(&Decoded::new(id, parts, layout, &layout.to_string()))?;
    } else {
        data.text(id.text(args.format.format))?;
    }
    data.flush()
}

fn worker(args: &EncodeArgs) -> Result<u64, Failure> {
    if args.part.is_empty() {
        return Ok(args.worker);
    }
    let layout = &args.layout.layout;
    let names: Vec<&str> = layout.worker_parts().iter().map(frazil_id::Part::name).collect();
    if let Some((unknown, _)) = args.part.iter().find(|(name, _)| !names.contains(&name.as_str())) {
        let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        return Err(Failure::usage(format_args!(
            "the worker has no part {unknown:?}: the layout's parts are {known}"
        )));
    }
    let values = args.part.iter().map(|(name, value)| (name.as_str(), *value));
    layout.join_worker(values).map_err(Failure::usage)
}
