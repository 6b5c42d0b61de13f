//! Parameters of the path's query.

use std::borrow::Cow;

use frazil_wire::{ApiError, Reason};
use hyper::Uri;

/// The values of known parameters, in the order of their names. A parameter that is unknown or
/// there twice is an error: whoever mistypes one should know.
pub(super) fn known<'a, const N: usize>(
    uri: &'a Uri,
    names: [&'static str; N],
) -> Result<[Option<Cow<'a, str>>; N], ApiError> {
    let mut values = [const { None }; N];
    let Some(query) = uri.query() else { return Ok(values) };
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        let Some(place) = names.iter().position(|known| *known == name) else {
            return Err(unknown(&name, &names));
        };
        if values[place].replace(value).is_some() {
            let detail = format_args!("the parameter {name} is there twice");
            return Err(ApiError::new(Reason::InvalidArgument, detail));
        }
    }
    Ok(values)
}

/// For paths that take no parameters.
pub(super) fn none(uri: &Uri) -> Result<(), ApiError> {
    known(uri, []).map(|[]| ())
}

fn unknown(name: &str, names: &[&str]) -> ApiError {
    let short: String = name.chars().take(40).collect();
    let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    let detail = format_args!("no parameter {short:?} is known here; known: {known}");
    ApiError::new(Reason::InvalidArgument, detail)
}
