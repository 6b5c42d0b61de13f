//! `frazil errors`: the catalogue of errors.

use comfy_table::{Table, presets};
use frazil_wire::Reason;
use serde::Serialize;

use crate::args::ErrorsArgs;
use crate::output::{Data, Exit, Failure};
use crate::words::printable;

#[derive(Serialize)]
struct Entry {
    name: &'static str,
    http_status: u16,
    grpc_code: i32,
    retryable: bool,
    title: &'static str,
    help: &'static str,
}

pub(crate) fn run(args: &ErrorsArgs) -> Result<(), Failure> {
    let shown = match &args.name {
        None => Reason::ALL.to_vec(),
        Some(name) => vec![find(name)?],
    };
    let mut data = Data::new();
    match (args.json, args.name.is_some()) {
        (true, _) => shown.iter().try_for_each(|reason| data.json(&entry(*reason)))?,
        (_, true) => shown.iter().try_for_each(|reason| data.text(details(*reason)))?,
        _ => data.text(table(&shown))?,
    }
    data.flush()
}

fn find(name: &str) -> Result<Reason, Failure> {
    let wanted = name.to_ascii_uppercase().replace('-', "_");
    wanted.parse().map_err(|_| {
        let near = Reason::ALL.iter().map(|reason| reason.name());
        let near = near.min_by_key(|known| strsim::damerau_levenshtein(known, &wanted));
        let (name, near) = (printable(name), near.unwrap_or_default());
        Failure::new(Exit::No, format_args!("no error is named {name}; did you mean {near}?"))
    })
}

const fn entry(reason: Reason) -> Entry {
    Entry {
        name: reason.name(),
        http_status: reason.http_status(),
        grpc_code: reason.grpc_code(),
        retryable: reason.is_retryable(),
        title: reason.title(),
        help: reason.help(),
    }
}

fn details(reason: Reason) -> String {
    let Entry { name, http_status, grpc_code, retryable, title, help } = entry(reason);
    let again =
        if retryable { "the same request may succeed later" } else { "do not repeat it as it is" };
    format!(
        "{name}: {title}\n{help}\nHTTP {http_status}, gRPC code {grpc_code}, RESP -{name}; {again}"
    )
}

fn table(reasons: &[Reason]) -> String {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    table.set_header(["NAME", "HTTP", "GRPC", "RETRY", "MEANING"]);
    for reason in reasons {
        let Entry { name, http_status, grpc_code, retryable, title, .. } = entry(*reason);
        let retry = if retryable { "yes" } else { "no" };
        table.add_row([name, &http_status.to_string(), &grpc_code.to_string(), retry, title]);
    }
    table.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>().join("\n")
}
