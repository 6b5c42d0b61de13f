//! The form of what a server says on stderr, errors included: text, or JSON where its log is JSON.

use std::ffi::OsString;
use std::sync::atomic::{AtomicBool, Ordering};

use frazil_log::Form;

/// Whether all that is said on stderr is JSON.
static IS_JSON: AtomicBool = AtomicBool::new(false);

/// Decides what errors look like before the configuration is known: whoever wants JSON reads no text.
pub(crate) fn look_for_json(arguments: impl Iterator<Item = OsString>) {
    let typed: Vec<OsString> = arguments.skip(1).collect();
    let is_server = typed.iter().any(|word| word == "serve");
    let flag = typed.windows(2).any(|two| two[0] == "--log-format" && two[1] == "json");
    let is_typed = flag || typed.iter().any(|word| word == "--log-format=json");
    let is_set = std::env::var_os("FRAZIL_LOG_FORMAT").is_some_and(|form| form == "json");
    set_form(if is_server && (is_typed || is_set) { Form::Json } else { Form::Text });
}

/// Decides what errors look like.
pub(crate) fn set_form(form: Form) {
    // Relaxed: one thread sets it, before it says anything.
    IS_JSON.store(form == Form::Json, Ordering::Relaxed);
}

/// Whether all that is said on stderr is JSON.
pub(crate) fn is_json() -> bool {
    // Relaxed: see `set_form`.
    IS_JSON.load(Ordering::Relaxed)
}

/// An error as a line in the form that was asked for.
pub(crate) fn error_line(message: &str) -> String {
    match is_json() {
        true => frazil_log::json_error(message),
        false => format!("error: {message}"),
    }
}
