//! Errands: what connections of one thread ask of the partitions of other threads, as bytes.
//!
//! ```text
//! errand:  kind u8, bytes of the line u16, bytes of the value u32, the line, the value
//! answer:  its bytes u32, the bytes for the client, or figures, or a part of a list
//! ```
//! A command goes as the text that the client sent, with a key alone if the client's line has
//! several, so one parser and one renderer serve near keys and far ones. Numbers are in little
//! endian. Any client of the endpoint may send such bytes too. They never panic this thread, and
//! reach no items but those that a native client reaches.

use dunlin_store::{Cursor, Seconds};

use crate::command::{Ask, Command, parse};
use crate::limits::{MAX_LINE, OUTPUT_MARK};
use crate::operation::OperationTicket;
use crate::partition::Partition;
use crate::render::render;
use crate::words::each;

const TEXT: u8 = 0;
const FIGURES: u8 = 1;
const DUMP: u8 = 2;

const HEADER: usize = 7;

/// A line is one that the client sent, or name, time and key, of which none is longer than that.
const _: () = assert!(3 * MAX_LINE <= u16::MAX as usize, "a line's length fits");

/// Stands for the next place at the end of a list.
const AT_END: u64 = u64::MAX;

/// A task for another thread's partition, and the operation that needs its answer.
#[derive(Debug)]
pub struct Errand {
    ticket: OperationTicket,
    partition: u16,
    bytes: Vec<u8>,
}

/// Bytes that are not an errand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Malformed;

impl Errand {
    /// The command of a line and its value.
    pub(crate) fn text(
        ticket: OperationTicket,
        partition: u16,
        (line, value): (&[u8], &[u8]),
    ) -> Self {
        Self::new(ticket, partition, TEXT, (line, value))
    }

    pub(crate) fn figures(ticket: OperationTicket, partition: u16) -> Self {
        Self::new(ticket, partition, FIGURES, (b"", b""))
    }

    pub(crate) fn dump(ticket: OperationTicket, partition: u16, place: Cursor) -> Self {
        let place = place.number().to_le_bytes();
        Self::new(ticket, partition, DUMP, (&place, b""))
    }

    fn new(
        ticket: OperationTicket,
        partition: u16,
        kind: u8,
        (line, value): (&[u8], &[u8]),
    ) -> Self {
        let line_len = u16::try_from(line.len()).expect("a line of one key is short");
        let value_len = u32::try_from(value.len()).expect("a value has at most 1 MiB");
        let mut bytes = Vec::with_capacity(HEADER + line.len() + value.len());
        bytes.push(kind);
        bytes.extend_from_slice(&line_len.to_le_bytes());
        bytes.extend_from_slice(&value_len.to_le_bytes());
        bytes.extend_from_slice(line);
        bytes.extend_from_slice(value);
        Self {
            ticket,
            partition,
            bytes,
        }
    }

    /// The operation to which the answer belongs.
    #[must_use]
    pub fn ticket(&self) -> OperationTicket {
        self.ticket
    }

    /// The partition whose thread runs it.
    #[must_use]
    pub fn partition(&self) -> u16 {
        self.partition
    }

    /// Its bytes. A burst of errands is their bytes one after the other.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl Partition<'_> {
    /// Runs a burst of errands in order, and appends their answers. After an answer that makes the
    /// output as long as [`OUTPUT_MARK`], it runs no more of them; the sender sends those again.
    ///
    /// # Errors
    /// [`Malformed`]; the errands before the malformed one have run.
    pub fn run_errands(
        &mut self,
        mut burst: &[u8],
        now: Seconds,
        out: &mut Vec<u8>,
    ) -> Result<(), Malformed> {
        while !burst.is_empty() && out.len() < OUTPUT_MARK {
            let (header, rest) = burst.split_at_checked(HEADER).ok_or(Malformed)?;
            let line_len = u16::from_le_bytes([header[1], header[2]]);
            let value_len = u32::from_le_bytes([header[3], header[4], header[5], header[6]]);
            let (line, rest) = rest.split_at_checked(line_len.into()).ok_or(Malformed)?;
            let (value, rest) = rest.split_at_checked(value_len as usize).ok_or(Malformed)?;
            burst = rest;
            let start = out.len();
            out.extend_from_slice(&[0; 4]);
            match header[0] {
                TEXT => self.run_text(line, value, now, out)?,
                FIGURES => self.figures().append_to(out),
                DUMP => {
                    let place = line.try_into().map_err(|_| Malformed)?;
                    self.run_dump(Cursor::of_number(u64::from_le_bytes(place)), now, out);
                }
                _ => return Err(Malformed),
            }
            let len = u32::try_from(out.len() - start - 4).expect("a mark and a value");
            out[start..start + 4].copy_from_slice(&len.to_le_bytes());
        }
        Ok(())
    }

    fn run_text(
        &mut self,
        line: &[u8],
        value: &[u8],
        now: Seconds,
        out: &mut Vec<u8>,
    ) -> Result<(), Malformed> {
        let ask = match parse(line, now) {
            Command::Ask(ask) if ask.value_len().unwrap_or(0) == value.len() => ask,
            Command::Keys(keys) => Ask::Get {
                key: each(&line[keys.at..]).next().ok_or(Malformed)?,
                with_version: keys.with_version,
                touch: keys.touch,
            },
            _ => return Err(Malformed),
        };
        self.run(&ask.operation(value), now, |answer| {
            render(&ask, answer, now, out);
        });
        Ok(())
    }

    fn run_dump(&mut self, place: Cursor, now: Seconds, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&AT_END.to_le_bytes());
        if let Some(next) = self.list(place, now, out) {
            out[start..start + 8].copy_from_slice(&next.number().to_le_bytes());
        }
    }
}

/// The answers of a burst in order: those that have come whole.
pub fn answers(mut bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let (len, rest) = bytes.split_first_chunk()?;
        let (answer, rest) = rest.split_at_checked(u32::from_le_bytes(*len) as usize)?;
        bytes = rest;
        Some(answer)
    })
}

/// The lines of a part of a list, and where the list goes on.
pub(crate) fn part_of_list(answer: &[u8]) -> Option<(&[u8], Option<Cursor>)> {
    let (next, lines) = answer.split_first_chunk()?;
    let next = u64::from_le_bytes(*next);
    Some((lines, (next != AT_END).then(|| Cursor::of_number(next))))
}
