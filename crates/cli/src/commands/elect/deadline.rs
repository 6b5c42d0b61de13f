//! Until when a command may run: written by `frazil elect`, read by the guard of the command, so that
//! the guard can end the command even if nobody tells it anything any more.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use rustix::fs::{MemfdFlags, memfd_create};

/// Where no time ends a leadership.
const NEVER: u64 = u64::MAX;

/// The end that writes. The file is in memory and goes with the processes that have it open.
#[derive(Debug)]
pub(super) struct Deadline {
    file: File,
    written: Option<u64>,
}

/// The end that reads.
#[derive(Debug)]
pub(super) struct DeadlineReader {
    file: File,
}

impl Deadline {
    pub(super) fn new() -> io::Result<Self> {
        let file = File::from(memfd_create("frazil-deadline", MemfdFlags::CLOEXEC)?);
        Ok(Self { file, written: None })
    }

    /// Its descriptor in this process.
    pub(super) fn descriptor(&self) -> i32 {
        self.file.as_raw_fd()
    }

    /// The command may run until this boot time; for ever if there is none.
    pub(super) fn set(&mut self, deadline: Option<Duration>) -> io::Result<()> {
        let nanos = deadline.map_or(NEVER, |at| u64::try_from(at.as_nanos()).unwrap_or(NEVER));
        if self.written != Some(nanos) {
            self.file.write_all_at(&encoded(nanos), 0)?;
            self.written = Some(nanos);
        }
        Ok(())
    }
}

impl DeadlineReader {
    /// Opens what another process of the same user has open.
    pub(super) fn open(process: i32, descriptor: i32) -> io::Result<Self> {
        Ok(Self { file: File::open(format!("/proc/{process}/fd/{descriptor}"))? })
    }

    /// Until when the command may run; `None` if no time ends it.
    pub(super) fn get(&self) -> io::Result<Option<Duration>> {
        loop {
            let mut bytes = [0; 16];
            self.file.read_exact_at(&mut bytes, 0)?;
            // Both halves differ only while they are being written.
            if let Some(nanos) = decoded(bytes) {
                return Ok((nanos != NEVER).then(|| Duration::from_nanos(nanos)));
            }
        }
    }
}

/// The number and its complement.
fn encoded(nanos: u64) -> [u8; 16] {
    (u128::from(nanos) << 64 | u128::from(!nanos)).to_le_bytes()
}

fn decoded(bytes: [u8; 16]) -> Option<u64> {
    let both = u128::from_le_bytes(bytes);
    let (nanos, complement) = (u64::try_from(both >> 64).ok()?, !both);
    (u64::try_from(complement & u128::from(u64::MAX)).ok()? == nanos).then_some(nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let mut deadline = Deadline::new().unwrap();
        let own = i32::try_from(std::process::id()).unwrap();
        let reader = DeadlineReader::open(own, deadline.descriptor()).unwrap();
        assert!(reader.get().is_err(), "nothing is there yet");
        for at in [Some(Duration::from_nanos(1_794_745_654_763)), None, Some(Duration::ZERO)] {
            deadline.set(at).unwrap();
            assert_eq!(reader.get().unwrap(), at);
        }
    }

    #[test]
    fn half_of_a_number_is_none() {
        let (old, new) = (encoded(7), encoded(8));
        let mut torn = old;
        torn[..8].copy_from_slice(&new[..8]);
        assert_eq!((decoded(old), decoded(new), decoded(torn)), (Some(7), Some(8), None));
    }
}
