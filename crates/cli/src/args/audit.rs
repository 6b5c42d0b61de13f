//! The arguments of `frazil audit`.

use std::ffi::OsString;

use clap::Args as ClapArgs;

use super::{FormatArg, LayoutArg};

/// Find duplicates among IDs, exactly, and say whether they ascend.
///
/// Reads files with one ID per line, and counts every ID that came again, in the same file or in
/// another; the first ten are told with both places. Nothing is forgotten however many IDs lie
/// between. The exit code is 1 if an ID came twice or is not of the layout; if not, 3 if a file
/// cannot be read to its end; if not, 2 if a line is no ID.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  frazil next -n 1000000 | frazil audit -
  frazil audit monday.txt tuesday.txt --ordered
  frazil audit --layout discord --json messages.txt
  curl -sH 'Accept: application/octet-stream' -X POST \\
    'http://127.0.0.1:7780/v1/ids?count=10000' > ids && frazil audit --binary ids")]
pub(crate) struct AuditArgs {
    /// Files of IDs, each once; `-` is stdin.
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<OsString>,
    /// The files have 8 bytes for each ID, the most significant first, and no lines.
    #[arg(long, conflicts_with = "format")]
    pub(crate) binary: bool,
    /// An ID that is not above the one before it in its file counts as a finding.
    #[arg(long)]
    pub(crate) ordered: bool,
    #[command(flatten)]
    pub(crate) layout: LayoutArg,
    #[command(flatten)]
    pub(crate) format: FormatArg,
    /// Print one JSON object for each finding, and one for the verdict.
    #[arg(long)]
    pub(crate) json: bool,
}
