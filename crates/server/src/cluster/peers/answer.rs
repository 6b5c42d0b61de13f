//! The answer of another node, taken apart. Nothing in it is trusted: who names a leader in the store
//! writes whatever it likes.

use std::time::Duration;

use frazil_client::Error;
use frazil_client::between_nodes::IdsAnswer;
use frazil_id::Id;
use frazil_wire::{ApiError, printable};
use hyper::header::HeaderName;

use super::{LEADER_TOKEN, NODE, REGION, TOKEN, text};

/// The longest wait that another node can ask of this node's clients.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(10);
/// Characters of what another node says: a sentence or two.
const TEXT_MAX: usize = 512;

/// What a node gave.
#[derive(Clone, Debug)]
pub(crate) struct LeaderAnswer {
    pub(crate) ids: Vec<Id>,
    pub(crate) node: String,
    pub(crate) region: Option<String>,
    /// The token of the worker's lease.
    pub(crate) token: u64,
    /// The token that it leads the scope with.
    pub(crate) leader_token: Option<u64>,
}

/// Why a node gave nothing.
#[derive(Debug)]
pub(crate) enum ForwardError {
    /// It cannot be reached, or broke off.
    Unreachable(String),
    /// It answered that it does not.
    Refused(ApiError),
}

/// Takes apart what asking a node came to.
pub(super) fn understood(
    base: &str,
    asked: Result<IdsAnswer, Error>,
) -> Result<LeaderAnswer, ForwardError> {
    let IdsAnswer { ids, headers } = asked.map_err(forward_error)?;
    let token = |name: HeaderName| text(&headers, &name).and_then(|token| token.parse().ok());
    let said = |name: HeaderName| text(&headers, &name).map(|text| shown(&text));
    let (Some(token), Some(node), leader_token) = (token(TOKEN), said(NODE), token(LEADER_TOKEN))
    else {
        return Err(ForwardError::Unreachable(format!("{base} does not answer as a node does")));
    };
    Ok(LeaderAnswer { ids, node, region: said(REGION), token, leader_token })
}

fn forward_error(error: Error) -> ForwardError {
    match error {
        Error::Refused { mut error, .. } => {
            error.retry_after = error.retry_after.map(|wait| wait.min(RETRY_AFTER_MAX));
            error.detail = shown(&error.detail);
            ForwardError::Refused(error)
        }
        other => ForwardError::Unreachable(shown(&format!("{other:#}"))),
    }
}

/// What another node says, as it can be shown and logged.
fn shown(text: &str) -> String {
    let short: String = text.chars().take(TEXT_MAX).collect();
    printable(&short)
}

#[cfg(test)]
mod tests {
    use frazil_wire::Reason;

    use super::*;

    fn refusal(detail: &str, retry_after: Option<Duration>) -> ApiError {
        let mut error = ApiError::new(Reason::Overloaded, detail);
        error.retry_after = retry_after;
        match forward_error(Error::Refused { endpoint: "http://x".into(), error }) {
            ForwardError::Refused(error) => error,
            other @ ForwardError::Unreachable(_) => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_wait_that_another_node_asks_for_is_bounded() {
        let brief = Some(Duration::from_millis(7));
        assert_eq!(refusal("busy", Some(Duration::MAX)).retry_after, Some(RETRY_AFTER_MAX));
        assert_eq!(refusal("busy", brief).retry_after, brief);
        assert_eq!(refusal("busy", None).retry_after, None);
    }

    #[test]
    fn what_another_node_says_is_short_and_steers_no_terminal() {
        let said = refusal("\u{1b}[2J\u{9b}31m\u{202e}\n+OK", None).detail;
        assert_eq!(said, "\\u{1b}[2J\\u{9b}31m\\u{202e}\\n+OK");
        assert_eq!(refusal(&"x".repeat(100_000), None).detail.len(), TEXT_MAX);
    }
}
