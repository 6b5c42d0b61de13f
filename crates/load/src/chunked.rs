//! Bodies in chunks, as proxies send them that do not know how long an answer will be.

use httparse::Status;

use crate::fault::Fault;
use crate::http::BODY_BYTES_MAX;

/// Lines after the last chunk: hardly anybody sends any.
const TRAILERS_MAX: usize = 16;

/// A body that is put together at the beginning of its own chunks.
#[derive(Debug)]
pub(crate) struct Chunked {
    /// Where the next chunk begins.
    next: usize,
    /// Where the body ends that is put together so far.
    body_end: usize,
}

impl Chunked {
    /// Chunks that begin there in a buffer.
    pub(crate) const fn new(begin: usize) -> Self {
        Self { next: begin, body_end: begin }
    }

    /// Takes the chunks that are whole; where everything ends, once the last is there.
    pub(crate) fn advance(&mut self, bytes: &mut [u8]) -> Result<Option<usize>, Fault> {
        loop {
            let parsed = httparse::parse_chunk_size(&bytes[self.next..]);
            let parsed = parsed.map_err(|_| Fault::stranger("a chunk has no size"))?;
            let Status::Complete((head, size)) = parsed else { return Ok(None) };
            let begin = self.next + head;
            let size = usize::try_from(size).ok().filter(|size| *size <= BODY_BYTES_MAX);
            let size = size.ok_or_else(|| Fault::stranger("a chunk is longer than any answer"))?;
            if size == 0 {
                return end_of_trailers(&bytes[begin..]).map(|end| Some(begin + end?));
            }
            let end = begin + size;
            let Some(line_end) = bytes.get(end..end + 2) else { return Ok(None) };
            if line_end != b"\r\n" {
                return Err(Fault::stranger("a chunk is longer than it says"));
            }
            bytes.copy_within(begin..end, self.body_end);
            self.body_end += size;
            self.next = end + 2;
        }
    }

    /// Where the body ends that is put together so far.
    pub(crate) const fn body_end(&self) -> usize {
        self.body_end
    }
}

fn end_of_trailers(bytes: &[u8]) -> Result<Option<usize>, Fault> {
    let mut headers = [httparse::EMPTY_HEADER; TRAILERS_MAX];
    match httparse::parse_headers(bytes, &mut headers) {
        Ok(Status::Complete((end, _))) => Ok(Some(end)),
        Ok(Status::Partial) => Ok(None),
        Err(_) => Err(Fault::stranger("what stands after the last chunk is no trailer")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The body and where it all ends, of a text that comes in two pieces.
    fn read(text: &[u8], cut: usize) -> Result<Option<(Vec<u8>, usize)>, Fault> {
        let mut bytes = [b"head", text].concat();
        let mut chunked = Chunked::new(4);
        let early = chunked.advance(&mut bytes[..4 + cut])?;
        let end = match early {
            Some(end) => Some(end),
            None => chunked.advance(&mut bytes)?,
        };
        Ok(end.map(|end| (bytes[4..chunked.body_end()].to_vec(), end - 4)))
    }

    #[test]
    fn chunks_become_one_body_wherever_they_are_cut() {
        let text = b"3\r\nabc\r\n00A;x=y\r\n0123456789\r\n0\r\nsum: 7\r\n\r\n";
        for cut in 0..=text.len() {
            let (body, end) = read(text, cut).unwrap().unwrap();
            assert_eq!((body.as_slice(), end), (&b"abc0123456789"[..], text.len()), "{cut}");
        }
        assert_eq!(read(b"0\r\n\r\nmore", 0).unwrap(), Some((Vec::new(), 5)));
    }

    #[test]
    fn what_is_not_whole_is_waited_for() {
        let text = b"3\r\nabc\r\n0\r\n\r\n";
        for end in 0..text.len() {
            assert_eq!(read(&text[..end], 0).unwrap(), None, "{end}");
        }
    }

    #[test]
    fn what_is_no_chunk_is_told() {
        for text in ["x\r\n", "3\r\nabcd\r\n", "-1\r\n", "fffffffffffffff\r\n", "0\r\n\x01\r\n\r\n"]
        {
            assert!(read(text.as_bytes(), 0).is_err(), "{text:?}");
        }
    }
}
