//! Bytes of the client that no command has used yet.

use crate::limits::{IDLE_BYTES, INPUT_MARK, MAX_INDENT, MAX_KEYS_LINE, MAX_LINE};

#[derive(Default, Debug)]
pub(super) struct Input {
    bytes: Vec<u8>,
    start: usize,
    /// Bytes at the front that contain no line end.
    searched: usize,
    /// Bytes that were taken from the front.
    used: u64,
}

/// The first line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Line {
    /// It has not ended yet.
    Short,
    /// It is longer than any command.
    TooLong,
    /// Its text ends at `end`, and the next line begins at `next`.
    Whole { end: usize, next: usize },
}

impl Input {
    pub(super) fn len(&self) -> usize {
        self.bytes.len() - self.start
    }

    /// Bytes of all commands that were taken from the front so far.
    pub(super) fn used(&self) -> u64 {
        self.used
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[self.start..]
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        if self.start > 0 && self.bytes.len() + bytes.len() > self.bytes.capacity() {
            self.bytes.drain(..self.start);
            self.start = 0;
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// Forgets bytes at the front.
    pub(super) fn take(&mut self, len: usize) {
        self.start += len;
        self.used += len as u64;
        self.searched = 0;
        if self.start == self.bytes.len() {
            self.bytes.clear();
            self.start = 0;
            if self.bytes.capacity() > 2 * INPUT_MARK {
                self.bytes.shrink_to(INPUT_MARK);
            }
        }
    }

    pub(super) fn trim(&mut self) {
        if self.len() == 0 {
            self.bytes.shrink_to(IDLE_BYTES);
        }
    }

    /// Memory in use, in bytes.
    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        self.bytes.capacity()
    }

    /// Finds the end of the first line. A carriage return before it belongs to the end.
    pub(super) fn line(&mut self) -> Line {
        let bytes = &self.bytes[self.start..];
        let fresh = &bytes[self.searched..];
        let end = fresh.iter().position(|byte| *byte == b'\n');
        let end = end.map(|at| self.searched + at);
        let len = end.unwrap_or(bytes.len());
        if len > MAX_LINE && len > limit(bytes) {
            return Line::TooLong;
        }
        let Some(at) = end else {
            self.searched = len;
            return Line::Short;
        };
        let has_return = at > 1 && bytes[at - 1] == b'\r';
        Line::Whole {
            end: at - usize::from(has_return),
            next: at + 1,
        }
    }

    /// Whether the first line may be long, and has not ended within the usual number of bytes.
    pub(super) fn may_be_long(&self) -> bool {
        self.searched == self.len() && self.len() > MAX_LINE && limit(self.bytes()) > MAX_LINE
    }
}

/// The longest line that may begin with these bytes: lines of many keys are long.
fn limit(bytes: &[u8]) -> usize {
    let indent = bytes.iter().take_while(|byte| **byte == b' ').count();
    let line = &bytes[indent..];
    let names = [&b"get "[..], b"gets ", b"gat ", b"gats "];
    if indent <= MAX_INDENT && names.iter().any(|name| line.starts_with(name)) {
        MAX_KEYS_LINE
    } else {
        MAX_LINE
    }
}
