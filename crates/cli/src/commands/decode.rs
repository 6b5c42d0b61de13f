//! `frazil decode`: take Ids apart.

use std::fmt::Display;
use std::io::{self, BufRead, BufReader, Read};

use frazil_id::{Format, Id, Layout, Parts, rfc3339};
use frazil_wire::Decoded;
use serde::Serialize;

use crate::args::DecodeArgs;
use crate::output::{Data, Exit, Failure, say};
use crate::progress;

/// Bytes of a line of input. The longest text of an Id has 20; the rest is room for a message that
/// shows what was read instead.
const LINE_MAX: u64 = 256;
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

/// Decodes one Id after the other, and remembers what was wrong.
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
            if input.take(LINE_MAX).read_until(b'\n', &mut line).map_err(unreadable)? == 0 {
                break;
            }
            if line.last() != Some(&b'\n') && line.len() as u64 == LINE_MAX {
                input.skip_until(b'\n').map_err(unreadable)?;
            }
            let text = line.strip_suffix(b"\n").unwrap_or(&line);
            let text = text.strip_suffix(b"\r").unwrap_or(text);
            if !text.is_empty() {
                self.decode(text, &format_args!("line {number}: "))?;
            }
            if number.is_multiple_of(PROGRESS_LINES) {
                bar.set_position(number);
            }
        }
        bar.finish_and_clear();
        Ok(())
    }

    fn decode(&mut self, text: &[u8], place: &dyn Display) -> Result<(), Failure> {
        let lossy = String::from_utf8_lossy(text);
        match Id::parse(&lossy, self.format) {
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
            say(format_args!("error: {place}{text:?} is not an Id of the layout: {error}"));
        }
    }

    fn finish(mut self) -> Result<(), Failure> {
        self.data.flush()?;
        if self.complaints > COMPLAINTS_MAX {
            let more = self.complaints - COMPLAINTS_MAX;
            say(format_args!("error: {more} more were not Ids of the layout"));
        }
        if self.complaints > 0 { Err(Failure::Reported(Exit::Usage)) } else { Ok(()) }
    }
}

fn unreadable(error: io::Error) -> Failure {
    Failure::new(Exit::Unavailable, format_args!("stdin cannot be read: {error}"))
}
