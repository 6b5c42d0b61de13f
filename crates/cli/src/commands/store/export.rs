//! `frazil store export`.

use frazil::coord::{Found, Group, Meta, Record};
use serde::{Deserialize, Serialize};

use crate::args::ExportArgs;
use crate::output::{Data, Failure, say};

/// One line of an export: meta first, then the records, then how many they were.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Line {
    Meta(Meta),
    Record {
        group: Group,
        name: String,
        /// Lost records are exported too: whoever imports must not take them for new.
        record: Option<Record>,
    },
    /// The last line: an export that was cut off has none.
    End {
        records: usize,
    },
}

pub(super) async fn run(args: &ExportArgs) -> Result<(), Failure> {
    let (store, meta) = args.place.open_namespace().await?;
    let mut data = Data::new();
    data.json(&Line::Meta(meta.value))?;
    let mut records = 0;
    for group in Group::ALL {
        for entry in store.list(group).await? {
            let record = match entry.found {
                Found::Known(record) => Some(record),
                Found::Lost => None,
                Found::New => continue,
            };
            data.json(&Line::Record { group, name: entry.slot.name().to_owned(), record })?;
            records += 1;
        }
    }
    data.json(&Line::End { records })?;
    data.flush()?;
    say(format_args!("exported {records} records"));
    Ok(())
}
