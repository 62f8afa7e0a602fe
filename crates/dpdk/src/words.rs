//! The log of DPDK, whose last lines errors show. DPDK writes it to a pipe, which the keeper
//! empties, so there is room for new lines.
//!
//! Owned by the process, as DPDK is. Called by `eal`, `device` and `keeper`.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{IntoRawFd, RawFd};
use std::sync::{Mutex, PoisonError};

use crate::ffi;

/// Bytes that are kept.
const KEPT: usize = 4096;

/// Lines that an error shows.
const SHOWN: usize = 4;

static WORDS: Mutex<Words> = Mutex::new(Words {
    pipe: None,
    last: Vec::new(),
});

#[derive(Debug)]
struct Words {
    /// The end to read; `None` before DPDK starts.
    pipe: Option<File>,
    last: Vec<u8>,
}

/// Makes the pipe, and returns the descriptor to which DPDK writes. It stays open.
pub(crate) fn listen() -> io::Result<RawFd> {
    let [read, write] = ffi::pipe()?;
    WORDS.lock().unwrap_or_else(PoisonError::into_inner).pipe = Some(read.into());
    Ok(write.into_raw_fd())
}

/// Reads the lines that DPDK has written.
pub(crate) fn collect() {
    let mut words = WORDS.lock().unwrap_or_else(PoisonError::into_inner);
    words.collect();
}

/// Describes the error with this negative number, with the last lines of DPDK's log.
pub(crate) fn error_of(code: i32) -> String {
    let mut words = WORDS.lock().unwrap_or_else(PoisonError::into_inner);
    words.collect();
    describe(code, &String::from_utf8_lossy(&words.last))
}

fn describe(code: i32, words: &str) -> String {
    let error = io::Error::from_raw_os_error(code.saturating_neg());
    let lines: Vec<_> = words.lines().filter(|it| !it.trim().is_empty()).collect();
    let last = lines[lines.len().saturating_sub(SHOWN)..].join("; ");
    match last.is_empty() {
        true => error.to_string(),
        false => format!("{error} ({last})"),
    }
}

impl Words {
    fn collect(&mut self) {
        let Some(pipe) = &mut self.pipe else {
            return;
        };
        let mut bytes = [0; KEPT];
        // An empty pipe is an error here, because its ends never wait.
        while let Ok(count @ 1..) = pipe.read(&mut bytes) {
            self.last.extend_from_slice(&bytes[..count]);
            let old = self.last.len().saturating_sub(KEPT);
            self.last.drain(..old);
        }
    }
}

#[cfg(test)]
mod tests;
