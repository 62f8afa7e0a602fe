//! Gets of long values, which are copied in slices. Other clients have their turns between two
//! slices.
//!
//! The answer is built apart from the output, and is added to it once complete. So if the value is
//! overwritten or removed meanwhile, the client has seen none of it, and the command starts over:
//! its answer is the next value, or a miss. An answer that had to start over several times is
//! copied in one piece, so a client always gets it. `fetch.rs` does the same for values of other
//! threads.

use dunlin_store::Seconds;

use crate::connection::{Connection, Phase, Reading};
use crate::limits::MOST_RESTARTS;
use crate::partition::LongValue;
use crate::server::Server;

/// A value that is being copied.
#[derive(Debug)]
pub(super) struct Copying {
    key: Vec<u8>,
    value: LongValue,
    /// Bytes of the value that are copied.
    done: usize,
    /// The answer so far.
    text: Vec<u8>,
}

/// The command that has asked for the value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Asked {
    /// The line at the front, of this length including its line end.
    Line(usize),
    /// A key of the line at the front: how much of the line was read before this key, and after it.
    Key(Reading, Reading),
}

impl Copying {
    /// Begins the answer to `key`. `line` is the line before the value.
    pub(super) fn new(key: &[u8], value: LongValue, line: &[u8]) -> Self {
        let mut text = Vec::with_capacity(line.len() + value.len + 2);
        text.extend_from_slice(line);
        Self {
            key: key.to_vec(),
            value,
            done: 0,
            text,
        }
    }
}

impl Connection {
    /// Whether the next long value is copied in slices.
    pub(super) const fn may_copy(&self) -> bool {
        self.restarts < MOST_RESTARTS
    }

    /// Continues with the answer in slices.
    pub(super) fn begin_copying(&mut self, copying: Copying, asked: Asked) {
        self.copying = Some(Box::new(copying));
        self.phase = Phase::Copying(asked);
    }

    /// Copies the next slice.
    pub(super) fn copy_slice(&mut self, asked: Asked, server: &mut impl Server, now: Seconds) {
        let Some(mut copying) = self.copying.take() else {
            unreachable!("a value is copied in this phase");
        };
        let Copying {
            key,
            value,
            done,
            text,
        } = &mut *copying;
        let mut partition = server.partition();
        let Some(copied) = partition.copy_slice(key, value.stamp, *done, text, now) else {
            return self.restart(asked);
        };
        *done += copied;
        if copying.done < copying.value.len {
            self.copying = Some(copying);
            return;
        }
        copying.text.extend_from_slice(b"\r\n");
        self.output.push(copying.text);
        self.restarts = 0;
        self.phase = match asked {
            Asked::Key(_, after) => Phase::Keys(after),
            Asked::Line(len) => {
                self.input.take(len);
                Phase::Line
            }
        };
    }

    /// Starts the command over, because the value is gone.
    fn restart(&mut self, asked: Asked) {
        self.restarts += 1;
        self.phase = match asked {
            Asked::Key(before, _) => Phase::Keys(before),
            Asked::Line(_) => Phase::Line,
        };
    }
}
