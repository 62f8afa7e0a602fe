//! Errands: the requests of a thread's connections to the partitions of other threads, as bytes.
//!
//! ```text
//! errand:  kind u8, bytes of the line u16, bytes of the value u32, the line, the value
//! answer:  its bytes u32, the bytes for the client, or figures, or a part of a list
//! ```
//! A command is sent as the client's text, reduced to one key if the client's line has several, so
//! near and far keys share one parser and one renderer. Numbers are little endian. Any client of
//! the endpoint may send such bytes, too. They never make this thread panic, and reach only items
//! that a native client can reach.

use dunlin_store::{Cursor, SLICE, Seconds, Writing};

use crate::command::{Ask, Command, parse};
use crate::limits::{MAX_LINE, OUTPUT_MARK};
use crate::operation::{Answer, Operation, OperationTicket};
use crate::partition::Partition;
use crate::render::render;
use crate::words::each;

const TEXT: u8 = 0;
const FIGURES: u8 = 1;
const DUMP: u8 = 2;

const HEADER: usize = 7;

/// The line of an errand is the client's line, or a name, a time and a key, each of at most
/// [`MAX_LINE`] bytes.
const _: () = assert!(3 * MAX_LINE <= u16::MAX as usize, "a line's length fits");

/// Replaces the next place at the end of a list.
const AT_END: u64 = u64::MAX;

/// A task for another thread's partition, and the operation that needs its answer.
#[derive(Debug)]
pub struct Errand {
    ticket: OperationTicket,
    partition: u16,
    bytes: Vec<u8>,
}

/// The progress of a partition with a burst of errands. It is kept until the burst is over, because
/// a long value is written in parts.
#[derive(Debug)]
pub struct BurstRun {
    /// Bytes of the errands that have run.
    at: usize,
    /// The write of the next errand.
    writing: Writing,
    answers: Vec<u8>,
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

    /// Its bytes. A burst consists of the bytes of several errands, one after the other.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl BurstRun {
    /// The run of a burst that has not begun. Its answers are built in `answers`.
    #[must_use]
    pub fn new(mut answers: Vec<u8>) -> Self {
        answers.clear();
        Self {
            at: 0,
            writing: Writing::default(),
            answers,
        }
    }

    /// The answers so far.
    #[must_use]
    pub fn answers(&self) -> &[u8] {
        &self.answers
    }

    /// The memory of the answers, for the next burst.
    #[must_use]
    pub fn into_memory(self) -> Vec<u8> {
        self.answers
    }
}

impl Partition<'_> {
    /// Runs errands of a burst in order, and appends their answers. True: the burst is over. False:
    /// a part of a long value was written, and the caller does other work before it calls again. If
    /// an answer makes the output as long as [`OUTPUT_MARK`], the burst is over, and the sender
    /// sends the remaining errands again.
    ///
    /// # Errors
    /// [`Malformed`]; the errands before the malformed one have run.
    pub fn run_errands(
        &mut self,
        burst: &[u8],
        run: &mut BurstRun,
        now: Seconds,
    ) -> Result<bool, Malformed> {
        while run.at < burst.len() && run.answers.len() < OUTPUT_MARK {
            let bytes = burst.get(run.at..).ok_or(Malformed)?;
            let (header, rest) = bytes.split_at_checked(HEADER).ok_or(Malformed)?;
            let line_len = u16::from_le_bytes([header[1], header[2]]);
            let value_len = u32::from_le_bytes([header[3], header[4], header[5], header[6]]);
            let (line, rest) = rest.split_at_checked(line_len.into()).ok_or(Malformed)?;
            let (value, rest) = rest.split_at_checked(value_len as usize).ok_or(Malformed)?;
            let BurstRun {
                writing,
                answers: out,
                ..
            } = &mut *run;
            let start = out.len();
            out.extend_from_slice(&[0; 4]);
            match header[0] {
                TEXT => {
                    if !self.run_text((line, value), writing, now, out)? {
                        out.truncate(start);
                        return Ok(false);
                    }
                }
                FIGURES => self.figures().append_to(out),
                DUMP => {
                    let place = line.try_into().map_err(|_| Malformed)?;
                    self.run_dump(Cursor::of_number(u64::from_le_bytes(place)), now, out);
                }
                _ => return Err(Malformed),
            }
            let len = u32::try_from(out.len() - start - 4).expect("a mark and a value");
            out[start..start + 4].copy_from_slice(&len.to_le_bytes());
            run.at = burst.len() - rest.len();
        }
        Ok(true)
    }

    /// Runs the command of a line. False: only a part of its value is written.
    fn run_text(
        &mut self,
        (line, value): (&[u8], &[u8]),
        writing: &mut Writing,
        now: Seconds,
        out: &mut Vec<u8>,
    ) -> Result<bool, Malformed> {
        let ask = match parse(line, now) {
            Command::Ask(ask) if ask.value_len().unwrap_or(0) == value.len() => ask,
            Command::Keys(keys) => Ask::Get {
                key: each(&line[keys.at..]).next().ok_or(Malformed)?,
                with_version: keys.with_version,
                touch: keys.touch,
            },
            _ => return Err(Malformed),
        };
        let operation = ask.operation(value);
        if let Operation::Write(store) = &operation
            && value.len() > SLICE
        {
            let Some(written) = self.write_part(store, writing, now) else {
                return Ok(false);
            };
            render(&ask, &Answer::Written(written), now, out);
            return Ok(true);
        }
        self.run(&operation, now, |answer| render(&ask, answer, now, out));
        Ok(true)
    }

    fn run_dump(&mut self, place: Cursor, now: Seconds, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&AT_END.to_le_bytes());
        if let Some(next) = self.list(place, now, out) {
            out[start..start + 8].copy_from_slice(&next.number().to_le_bytes());
        }
    }
}

/// The answers of a burst in order, without an incomplete one at the end.
pub fn answers(mut bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let (len, rest) = bytes.split_first_chunk()?;
        let (answer, rest) = rest.split_at_checked(u32::from_le_bytes(*len) as usize)?;
        bytes = rest;
        Some(answer)
    })
}

/// The lines of a part of a list, and the place at which the list continues.
pub(crate) fn part_of_list(answer: &[u8]) -> Option<(&[u8], Option<Cursor>)> {
    let (next, lines) = answer.split_first_chunk()?;
    let next = u64::from_le_bytes(*next);
    Some((lines, (next != AT_END).then(|| Cursor::of_number(next))))
}
