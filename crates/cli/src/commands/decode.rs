//! `frazil decode`: the parts of IDs.

use std::borrow::Cow;
use std::fmt::Display;
use std::io::{self, BufRead, BufReader, Read};

use frazil_id::{Format, Id, Layout, ParseIdError, Parts, rfc3339};
use frazil_wire::Decoded;
use serde::{Deserialize, Serialize};

use crate::args::DecodeArgs;
use crate::output::{Data, Exit, Failure, say};
use crate::progress;

/// Bytes of a line of input. The longest text of an ID has 20; the rest is room for a message that
/// shows what was read instead.
const LINE_MAX: u64 = 256;
/// Bytes of a JSON object that a message shows.
const SHOWN_MAX: usize = 120;
/// Bytes of a JSON object. A server's largest answer has 100,000 IDs and 2.3 MB.
const OBJECT_MAX: u64 = 16 << 20;
/// Bytes read at once: a pipe's capacity on Linux.
const INPUT_BYTES: usize = 65_536;
/// Complaints printed in full; a file of the wrong kind has millions.
const COMPLAINTS_MAX: u64 = 10;
/// Lines between two looks at the progress bar.
const PROGRESS_LINES: u64 = 16_384;

pub(crate) fn run(args: &DecodeArgs) -> Result<(), Failure> {
    if let Some(&[from_ms, to_ms]) = args.between.as_deref() {
        return between(args, from_ms, to_ms);
    }
    let mut decoder = Decoder::new(args);
    for id in &args.ids {
        match id.as_str() {
            "-" => {
                decoder.stream(&mut BufReader::with_capacity(INPUT_BYTES, io::stdin().lock()))?
            }
            text => decoder.decode(text.as_bytes(), &"")?,
        }
    }
    decoder.finish()
}

fn between(args: &DecodeArgs, from_ms: i64, to_ms: i64) -> Result<(), Failure> {
    let layout = &args.layout.layout;
    let range = Id::range(layout, from_ms..to_ms).map_err(Failure::usage)?;
    let text = |id: &Id| id.text(args.format.format);
    let mut data = Data::new();
    if args.json {
        data.json(&Range {
            first: text(range.start()).to_string(),
            last: text(range.end()).to_string(),
            layout: *layout,
            from: rfc3339::Instant::from_unix_ms(from_ms).to_string(),
            to: rfc3339::Instant::from_unix_ms(to_ms).to_string(),
        })?;
    } else {
        data.text(text(range.start()))?;
        data.text(text(range.end()))?;
    }
    data.flush()
}

#[derive(Serialize)]
struct Range {
    first: String,
    last: String,
    layout: Layout,
    from: String,
    to: String,
}

/// Decodes one ID after the other, and remembers what was wrong.
struct Decoder {
    layout: Layout,
    layout_text: String,
    format: Format,
    json: bool,
    data: Data,
    complaints: u64,
}

impl Decoder {
    fn new(args: &DecodeArgs) -> Self {
        Self {
            layout: args.layout.layout,
            layout_text: args.layout.layout.to_string(),
            format: args.format.format,
            json: args.json,
            data: Data::new(),
            complaints: 0,
        }
    }

    fn stream(&mut self, input: &mut BufReader<impl Read>) -> Result<(), Failure> {
        let bar = progress::counter();
        let mut line = Vec::new();
        for number in 1_u64.. {
            line.clear();
            // Reading may wait now: whoever types or tails wants to see what there is.
            if input.buffer().is_empty() {
                self.data.flush()?;
            }
            if !read_line(input, &mut line).map_err(unreadable)? {
                break;
            }
            self.decode_line(line.trim_ascii_end(), &format_args!("line {number}: "))?;
            if number.is_multiple_of(PROGRESS_LINES) {
                bar.set_position(number);
            }
        }
        bar.finish_and_clear();
        Ok(())
    }

    /// Decodes a line: nothing, an ID, or what `frazil next --json` and servers write.
    fn decode_line(&mut self, line: &[u8], place: &dyn Display) -> Result<(), Failure> {
        if !line.starts_with(b"{") {
            return if line.is_empty() { Ok(()) } else { self.decode(line, place) };
        }
        let why = match serde_json::from_slice(line) {
            Ok(Object { id: None, ids }) if ids.is_empty() => {
                "it has neither id nor ids".to_owned()
            }
            Ok(Object { id, ids }) => {
                let mut all = id.iter().chain(&ids);
                return all.try_for_each(|id| self.decode(id.text().as_bytes(), place));
            }
            Err(error) => error.to_string(),
        };
        let start = String::from_utf8_lossy(&line[..line.len().min(SHOWN_MAX)]);
        self.complain(place, &start, &why);
        Ok(())
    }

    fn decode(&mut self, text: &[u8], place: &dyn Display) -> Result<(), Failure> {
        let lossy = String::from_utf8_lossy(text);
        match parse(&lossy, self.format) {
            Err(error) => self.complain(place, &lossy, &error),
            Ok(id) => match id.parts(&self.layout) {
                Err(error) => self.complain(place, &lossy, &error),
                Ok(parts) => self.print(id, parts)?,
            },
        }
        Ok(())
    }

    fn print(&mut self, id: Id, parts: Parts) -> Result<(), Failure> {
        let decoded = Decoded::new(id, parts, &self.layout, &self.layout_text);
        if self.json { self.data.json(&decoded) } else { self.data.text(decoded) }
    }

    fn complain(&mut self, place: &dyn Display, text: &str, error: &dyn Display) {
        self.complaints += 1;
        if self.complaints <= COMPLAINTS_MAX {
            say(format_args!("error: {place}{text:?} is not an ID of the layout: {error}"));
        }
    }

    fn finish(mut self) -> Result<(), Failure> {
        self.data.flush()?;
        if self.complaints > COMPLAINTS_MAX {
            let more = self.complaints - COMPLAINTS_MAX;
            say(format_args!("error: {more} more were not IDs of the layout"));
        }
        if self.complaints > 0 { Err(Failure::Reported(Exit::Usage)) } else { Ok(()) }
    }
}

/// A JSON object with one ID or many.
#[derive(Deserialize)]
struct Object<'a> {
    #[serde(borrow)]
    id: Option<JsonId<'a>>,
    #[serde(borrow, default)]
    ids: Vec<JsonId<'a>>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum JsonId<'a> {
    Number(u64),
    #[serde(borrow)]
    Text(Cow<'a, str>),
}

impl JsonId<'_> {
    fn text(&self) -> Cow<'_, str> {
        match self {
            Self::Number(id) => Cow::Owned(id.to_string()),
            Self::Text(text) => Cow::Borrowed(text),
        }
    }
}

/// Reads an ID as people write it: hexadecimal digits in any case, with zeros in front, marked by `0x` or by
/// the form.
fn parse(text: &str, format: Format) -> Result<Id, ParseIdError> {
    let marked = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    let Some(digits) = marked.or_else(|| (format == Format::Hex).then_some(text)) else {
        return Id::parse(text, format);
    };
    let digits = digits.to_ascii_lowercase();
    let significant = digits.trim_start_matches('0');
    Id::parse(
        if significant.is_empty() { &digits[..digits.len().min(1)] } else { significant },
        Format::Hex,
    )
}

/// Reads a line; of one that is too long, only its start. `false`: there is none.
fn read_line(input: &mut BufReader<impl Read>, line: &mut Vec<u8>) -> io::Result<bool> {
    let is_object = input.fill_buf()?.first() == Some(&b'{');
    let most = if is_object { OBJECT_MAX } else { LINE_MAX };
    let read = input.take(most).read_until(b'\n', line)? as u64;
    if line.last() != Some(&b'\n') && read == most {
        input.skip_until(b'\n')?;
    }
    Ok(read > 0)
}

fn unreadable(error: io::Error) -> Failure {
    Failure::new(Exit::Unavailable, format_args!("stdin cannot be read: {error}"))
}
