//! The header Retry-After.

use std::time::{Duration, SystemTime};

use hyper::header::{DATE, HeaderMap, HeaderName, RETRY_AFTER};

/// `Retry-After`: so many seconds, or a date. A date is compared with that of the answer, which is of
/// the same clock, and with ours only if it has none. One that has passed means at once.
pub(crate) fn read(headers: &HeaderMap, now: impl FnOnce() -> SystemTime) -> Option<Duration> {
    let text = text(headers, &RETRY_AFTER)?;
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let then = httpdate::parse_http_date(text).ok()?;
    let answered = self::text(headers, &DATE).and_then(|date| httpdate::parse_http_date(date).ok());
    let since = answered.unwrap_or_else(now);
    Some(then.duration_since(since).unwrap_or_default())
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    Some(headers.get(name)?.to_str().ok()?.trim())
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn read_at(retry_after: &'static str, date: Option<&'static str>) -> Option<Duration> {
        let mut headers = HeaderMap::new();
        headers.insert(RETRY_AFTER, HeaderValue::from_static(retry_after));
        headers.extend(date.map(|date| (DATE, HeaderValue::from_static(date))));
        // 1994-11-06 08:49:37.
        read(&headers, || SystemTime::UNIX_EPOCH + SECOND * 784_111_777)
    }

    #[test]
    fn seconds_and_all_forms_of_a_date_are_read() {
        for text in
            ["90", " 90 ", "Sun, 06 Nov 1994 08:51:07 GMT", "Sunday, 06-Nov-94 08:51:07 GMT"]
        {
            assert_eq!(read_at(text, None), Some(90 * SECOND), "{text}");
        }
        assert_eq!(read_at("Sun Nov  6 08:51:07 1994", None), Some(90 * SECOND));
    }

    #[test]
    fn a_date_is_compared_with_the_clock_that_wrote_it() {
        let date = Some("Sun, 06 Nov 1994 08:51:00 GMT");
        assert_eq!(read_at("Sun, 06 Nov 1994 08:51:07 GMT", date), Some(7 * SECOND));
        assert_eq!(read_at("Sun, 06 Nov 1994 08:50:00 GMT", date), Some(Duration::ZERO));
        let odd = Some("yesterday");
        assert_eq!(read_at("Sun, 06 Nov 1994 08:49:38 GMT", odd), Some(SECOND));
    }

    #[test]
    fn what_is_neither_is_not_read() {
        for text in ["", "soon", "-1", "1.5", "Sun, 99 Nov 1994 08:51:07 GMT", "\u{7f}"] {
            if let Ok(value) = HeaderValue::from_str(text) {
                let headers = HeaderMap::from_iter([(RETRY_AFTER, value)]);
                assert_eq!(read(&headers, || SystemTime::UNIX_EPOCH), None, "{text}");
            }
        }
        assert_eq!(read(&HeaderMap::new(), || SystemTime::UNIX_EPOCH), None);
    }
}
