//! Asking over the protocol of Redis, with as many commands under way as wanted.

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::book::Book;
use crate::client::{Facts, layout, lost};
use crate::connect::Io;
use crate::fault::Fault;
use crate::http::number;
use crate::moment::now;
use crate::plan::Plan;

/// Bytes that are read at once at the least.
const READ_BYTES: usize = 16 * 1024;
/// Bytes of a line: errors are a sentence or two.
const LINE_BYTES_MAX: usize = 64 * 1024;
/// Bytes of a line with a number: 64 bits have 20 digits.
const NUMBER_BYTES_MAX: usize = 32;
/// Items of `ID.INFO`.
const INFO_ITEMS_MAX: u64 = 128;

/// A connection.
#[derive(Debug)]
pub(crate) struct Resp {
    io: Io,
    /// All commands of a round.
    requests: Vec<u8>,
    depth: usize,
    buffer: Vec<u8>,
    /// What of the buffer was read and not used.
    begin: usize,
    end: usize,
}

impl Resp {
    pub(crate) async fn open(plan: &Plan, depth: usize) -> Result<Self, Fault> {
        let batch = plan.batch.to_string();
        let mut words = vec!["ID.NEXT", &batch];
        words.extend(plan.scope.iter().flat_map(|scope| ["SCOPE", scope]));
        let io = Io::connect(plan, None).await?;
        let buffer = vec![0; READ_BYTES];
        let mut resp =
            Self { io, requests: command(&words).repeat(depth), depth, buffer, begin: 0, end: 0 };
        if let Some(key) = plan.key() {
            tokio::time::timeout(plan.timeout, resp.log_in(key))
                .await
                .unwrap_or(Err(Fault::TimedOut))?;
        }
        Ok(resp)
    }

    async fn log_in(&mut self, key: &str) -> Result<(), Fault> {
        self.io.write_all(&command(&["AUTH", key])).await.map_err(lost)?;
        match self.line().await? {
            (b'+', _) => Ok(()),
            (b'-', text) => Err(refusal(text)),
            _ => Err(unexpected()),
        }
    }

    pub(crate) async fn facts(&mut self) -> Result<Facts, Fault> {
        self.io.write_all(&command(&["ID.INFO"])).await.map_err(lost)?;
        let items = match self.line().await? {
            (b'*', text) => number(text).filter(|items| *items <= INFO_ITEMS_MAX),
            (b'-', text) => return Err(refusal(text)),
            _ => None,
        };
        let mut told = Vec::new();
        for _ in 0..items.ok_or_else(unexpected)? {
            told.push(self.bulk().await?);
        }
        let of = |name: &str| {
            let pair = told.chunks_exact(2).find(|pair| pair[0] == name);
            pair.map(|pair| pair[1].clone()).ok_or_else(unexpected)
        };
        Ok(Facts {
            layout: layout(&of("layout")?)?,
            version: of("version")?,
            node: of("node")?,
            max_count: number(of("max_count")?.as_bytes()).ok_or_else(unexpected)?,
            // It is not told here.
            is_strict: false,
        })
    }

    pub(crate) async fn round(&mut self, book: &mut Book) -> Result<(), Fault> {
        self.io.write_all(&self.requests).await.map_err(lost)?;
        for _ in 0..self.depth {
            let count = match self.line().await? {
                (b'*', text) => number(text).ok_or_else(unexpected)?,
                (b'-', text) => {
                    book.refused(refusal(text))?;
                    continue;
                }
                _ => return Err(unexpected()),
            };
            for _ in 0..count {
                let id = self.id().await?;
                book.id(id);
            }
            book.answered(now(), None);
        }
        Ok(())
    }

    /// An ID. What is there already is taken without waiting: there are many.
    async fn id(&mut self) -> Result<u64, Fault> {
        loop {
            if let Some((id, length)) = whole_id(&self.buffer[self.begin..self.end])? {
                self.begin += length;
                return Ok(id);
            }
            self.read().await?;
        }
    }

    async fn bulk(&mut self) -> Result<String, Fault> {
        let length = match self.line().await? {
            (b'$', length) => number(length),
            _ => None,
        };
        let length = length.and_then(|length| usize::try_from(length).ok());
        let length = length.filter(|length| *length <= LINE_BYTES_MAX).ok_or_else(unexpected)?;
        while self.end - self.begin < length + 2 {
            self.read().await?;
        }
        let bytes = &self.buffer[self.begin..self.begin + length];
        let text = String::from_utf8_lossy(bytes).into_owned();
        self.begin += length + 2;
        Ok(text)
    }

    /// The kind of a line and what is in it.
    async fn line(&mut self) -> Result<(u8, &[u8]), Fault> {
        let line = self.raw_line().await?;
        line.split_first().map(|(kind, rest)| (*kind, rest)).ok_or_else(unexpected)
    }

    async fn raw_line(&mut self) -> Result<&[u8], Fault> {
        let mut searched = self.begin;
        let end = loop {
            let rest = &self.buffer[searched..self.end];
            if let Some(at) = rest.iter().position(|byte| *byte == b'\n') {
                break searched + at;
            }
            if self.end - self.begin > LINE_BYTES_MAX {
                return Err(unexpected());
            }
            let known = self.end - self.begin;
            self.read().await?;
            // What is there may have been moved.
            searched = self.begin + known;
        };
        let line = &self.buffer[self.begin..end];
        self.begin = end + 1;
        Ok(line.strip_suffix(b"\r").unwrap_or(line))
    }

    async fn read(&mut self) -> Result<(), Fault> {
        if self.begin == self.end {
            (self.begin, self.end) = (0, 0);
        }
        if self.buffer.len() - self.end < READ_BYTES / 2 {
            self.buffer.copy_within(self.begin..self.end, 0);
            (self.begin, self.end) = (0, self.end - self.begin);
            let room = self.end + READ_BYTES;
            self.buffer.resize(self.buffer.len().max(room), 0);
        }
        match self.io.read(&mut self.buffer[self.end..]).await.map_err(lost)? {
            0 => Err(Fault::Lost("it was closed before the answer was whole".to_owned())),
            read => {
                self.end += read;
                Ok(())
            }
        }
    }
}

/// An ID and its bytes, a string of digits or an integer, once it is whole.
fn whole_id(bytes: &[u8]) -> Result<Option<(u64, usize)>, Fault> {
    let Some((first, first_end)) = line_of(bytes)? else { return Ok(None) };
    let (digits, end) = match first.split_first() {
        Some((b':', digits)) => (digits, first_end),
        Some((b'$', length)) => {
            let Some((digits, end)) = line_of(&bytes[first_end..])? else { return Ok(None) };
            if number(length) != Some(digits.len() as u64) {
                return Err(unexpected());
            }
            (digits, first_end + end)
        }
        _ => return Err(unexpected()),
    };
    let id = number(digits).ok_or_else(unexpected)?;
    Ok(Some((id, end)))
}

/// A short line without its end, and the bytes up to the next.
fn line_of(bytes: &[u8]) -> Result<Option<(&[u8], usize)>, Fault> {
    let near = &bytes[..bytes.len().min(NUMBER_BYTES_MAX)];
    match near.iter().position(|byte| *byte == b'\n') {
        Some(at) => {
            let line = bytes[..at].strip_suffix(b"\r").ok_or_else(unexpected)?;
            Ok(Some((line, at + 1)))
        }
        None if bytes.len() >= NUMBER_BYTES_MAX => Err(unexpected()),
        None => Ok(None),
    }
}

fn command(words: &[&str]) -> Vec<u8> {
    let head = format!("*{}\r\n", words.len());
    let words = words.iter().map(|word| format!("${}\r\n{word}\r\n", word.len()));
    words.fold(head, |text, word| text + &word).into_bytes()
}

/// What an error line says; words that are Redis's own are those of the catalogue.
fn refusal(line: &[u8]) -> Fault {
    let text = String::from_utf8_lossy(line);
    let (word, detail) = text.split_once(' ').unwrap_or((&text, ""));
    let reason = match word {
        "NOAUTH" | "WRONGPASS" => "UNAUTHENTICATED",
        "NOPERM" => "FORBIDDEN",
        word => word,
    };
    Fault::refused(reason, detail.trim_end_matches('.'))
}

fn unexpected() -> Fault {
    Fault::stranger("it is not what Redis would say")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_arrays_of_words() {
        assert_eq!(command(&["ID.NEXT", "10"]), b"*2\r\n$7\r\nID.NEXT\r\n$2\r\n10\r\n");
    }

    #[test]
    fn an_id_is_taken_once_it_is_whole() {
        let text = b"$3\r\n123\r\n$1\r\n4\r\n";
        for end in 0..9 {
            assert_eq!(whole_id(&text[..end]).unwrap(), None, "{end}");
        }
        assert_eq!(whole_id(text).unwrap(), Some((123, 9)));
        assert_eq!(whole_id(b":77\r\n").unwrap(), Some((77, 5)));
        let long = [b'$'; 40];
        for bad in
            [&b"+OK\r\n"[..], b"$2\r\n123\r\n", b"$1\r\nx\r\n", b"$-1\r\n1\r\n", b"\n", &long]
        {
            assert!(whole_id(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn refusals_are_those_of_the_catalogue() {
        for (line, name) in [
            ("NOAUTH send a key", "UNAUTHENTICATED"),
            ("OVERLOADED retry_after_ms=7 busy", "OVERLOADED"),
            ("NOPERM FORBIDDEN: no", "FORBIDDEN"),
            ("ERR", "ERR"),
        ] {
            assert_eq!(refusal(line.as_bytes()).name(), name);
        }
    }
}
