//! Writes in slices to a table and its model, with other operations between the slices.

use super::driver::{Difference, Driver};
use super::operation::{Condition, Content, Operation, key_bytes};
use crate::{Verb, Write, Writing};

impl Driver {
    /// Writes a value in slices. Until it is complete, its key has its old item.
    pub(super) fn write_parts(&mut self, operation: &Operation) -> Result<(), Difference> {
        let Operation::Parts {
            key: number,
            verb,
            len,
            condition,
            others: (from, count, other_len),
            gives_up_after,
        } = operation
        else {
            return Ok(());
        };
        let from_byte = number.to_le_bytes()[0];
        let content = Content::Bytes {
            len: *len,
            from: from_byte,
        };
        let (bytes, value) = (key_bytes(*number), content.bytes());
        let write = Write {
            verb: *verb,
            if_version: self.version(&bytes, *condition),
            ..Write::set(&value)
        };
        let mut writing = Writing::default();
        for calls in 0.. {
            if *gives_up_after == Some(calls) {
                self.table.abandon(writing);
                return Ok(());
            }
            let before = self.model.get(&bytes).cloned();
            let key = self.key(&bytes);
            let part = self.table.write_part(&key, &write, &mut writing, self.now);
            if let Some(written) = part {
                return self.compare_write(&key, &write, written, before);
            }
            self.take_gone(None)?;
            self.get(&key)?;
            for other in 0..*count {
                let place = calls * count + other;
                self.write(&other_write(
                    from.wrapping_add(place),
                    *other_len,
                    from_byte,
                ))?;
            }
        }
        Ok(())
    }
}

fn other_write(key: u16, len: usize, from: u8) -> Operation {
    Operation::Write {
        key,
        verb: Verb::Set,
        content: Content::Bytes { len, from },
        flags: 0,
        lasts: None,
        condition: Condition::None,
        stale_if_older: false,
        is_explicit: false,
    }
}
