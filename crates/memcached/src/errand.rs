//! Errands: the requests of a thread's connections to the partitions of other threads, as bytes.
//!
//! ```text
//! errand:  kind u8, bytes of the line u16, bytes of the value u32, the line, the value
//! answer:  its bytes u32, the bytes for the client, or figures, or a part of a list
//! to a read:   0 u8, the bytes for the client; or
//!              1 u8, the client's line before a long value, stamp u64, bytes of the value u32
//! of a slice:  its line is that of the read, its value: stamp u64, place in the value u32
//! to a slice:  the bytes of the value; none: the value is gone
//! ```
//! A command is sent as the client's text, reduced to one key if the client's line has several, so
//! near and far keys share one parser and one renderer. Numbers are little endian. Any client of
//! the endpoint may send such bytes, too. They never make this thread panic, and reach only items
//! that a native client can reach.
//!
//! A burst ends after the first answer to a read of a long value. So no later command of the same
//! client runs before the client's thread has asked for all slices.

use dunlin_store::{Cursor, MAX_VALUE, Seconds, Stamp, Writing};

use crate::command::{Ask, Command, parse};
use crate::limits::{MAX_LINE, OUTPUT_MARK};
use crate::operation::{Answer, Operation, OperationTicket};
use crate::partition::{LongValue, Partition};
use crate::render::{render, render_part};
use crate::words::each;

const TEXT: u8 = 0;
const FIGURES: u8 = 1;
const DUMP: u8 = 2;
/// Like [`TEXT`], for a command that reads an item; a long value follows in slices.
const READ: u8 = 3;
const SLICE_OF: u8 = 4;

/// The first byte of an answer to a read.
const WHOLE: u8 = 0;
const LONG: u8 = 1;

const HEADER: usize = 7;

/// The line of an errand is the client's line, or a name, a time and a key, each of at most
/// [`MAX_LINE`] bytes.
const _: () = assert!(3 * MAX_LINE <= u16::MAX as usize, "a line's length fits");

/// Stands where the next place would, at the end of a list.
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

/// The answer to a command with a value, or a part of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Part<'a> {
    /// All bytes for the client.
    Whole(&'a [u8]),
    /// The line before a long value.
    Begin { line: &'a [u8], value: LongValue },
    /// A slice of the value.
    Slice(&'a [u8]),
    /// The item now has another value, or there is none.
    Gone,
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

    /// The command of a line that reads an item.
    pub(crate) fn read(ticket: OperationTicket, partition: u16, line: &[u8]) -> Self {
        Self::new(ticket, partition, READ, (line, b""))
    }

    /// The errand for the slice of the value that begins at byte `from`, for the same command.
    pub(crate) fn slice(&self, stamp: Stamp, from: usize) -> Self {
        let from = u32::try_from(from).expect("a value has at most 1 MiB");
        let stamp = stamp.to_number().to_le_bytes();
        let place = [&stamp[..], &from.to_le_bytes()].concat();
        Self::new(self.ticket, self.partition, SLICE_OF, (self.line(), &place))
    }

    /// The errand that starts the same command over. `in_one_piece`: its answer is whole, however
    /// long the value is.
    pub(crate) fn restart(&self, in_one_piece: bool) -> Self {
        let kind = if in_one_piece { TEXT } else { READ };
        Self::new(self.ticket, self.partition, kind, (self.line(), b""))
    }

    fn line(&self) -> &[u8] {
        let len = u16::from_le_bytes([self.bytes[1], self.bytes[2]]);
        &self.bytes[HEADER..][..len.into()]
    }

    /// Reads an answer to this errand; `None`: it is malformed.
    pub(crate) fn part<'a>(&self, answer: &'a [u8]) -> Option<Part<'a>> {
        match (self.bytes[0], answer) {
            (READ, [WHOLE, text @ ..]) => Some(Part::Whole(text)),
            (READ, [LONG, rest @ ..]) => {
                let (rest, len) = rest.split_last_chunk()?;
                let (line, stamp) = rest.split_last_chunk()?;
                let len = u32::from_le_bytes(*len) as usize;
                let stamp = Stamp::from_number(u64::from_le_bytes(*stamp));
                let value = LongValue { stamp, len };
                (len <= MAX_VALUE).then_some(Part::Begin { line, value })
            }
            (READ, _) => None,
            (SLICE_OF, []) => Some(Part::Gone),
            (SLICE_OF, slice) => Some(Part::Slice(slice)),
            (_, text) => Some(Part::Whole(text)),
        }
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
    /// an answer makes the output as long as [`OUTPUT_MARK`], or announces a long value, the burst
    /// is over, and the sender sends the remaining errands again.
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
            let mut is_last = false;
            match header[0] {
                TEXT => {
                    if !self.run_text((line, value), writing, now, out)? {
                        out.truncate(start);
                        return Ok(false);
                    }
                }
                READ => is_last = self.run_read(line, now, out)?,
                SLICE_OF => self.run_slice((line, value), now, out)?,
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
            if is_last {
                break;
            }
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
        let ask = ask_of(line, now)?;
        if ask.value_len().unwrap_or(0) != value.len() {
            return Err(Malformed);
        }
        let operation = ask.operation(value);
        if let Operation::Write(store) = &operation
            && store.may_be_long()
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

    /// Runs a command that reads an item. True: its value is long, and the sender asks for slices.
    fn run_read(
        &mut self,
        line: &[u8],
        now: Seconds,
        out: &mut Vec<u8>,
    ) -> Result<bool, Malformed> {
        let ask = ask_of(line, now)?;
        if !matches!(ask, Ask::Get { .. } | Ask::MetaGet(_)) {
            return Err(Malformed);
        }
        let start = out.len();
        out.push(WHOLE);
        let operation = ask.operation(b"");
        let ends_item = operation.ends_item(now);
        let long = self.run(&operation, now, |answer| {
            if ends_item {
                render(&ask, answer, now, out);
                return None;
            }
            render_part(&ask, answer, now, out)
        });
        if let Some(LongValue { stamp, len }) = long {
            out[start] = LONG;
            let len = u32::try_from(len).expect("a value has at most 1 MiB");
            out.extend_from_slice(&stamp.to_number().to_le_bytes());
            out.extend_from_slice(&len.to_le_bytes());
        }
        Ok(long.is_some())
    }

    /// Appends a slice of the value that a command reads, or nothing if the value is gone.
    fn run_slice(
        &mut self,
        (line, place): (&[u8], &[u8]),
        now: Seconds,
        out: &mut Vec<u8>,
    ) -> Result<(), Malformed> {
        let ask = ask_of(line, now)?;
        let key = ask.operation(b"").key().ok_or(Malformed)?;
        let (stamp, from) = place.split_first_chunk().ok_or(Malformed)?;
        let from = u32::from_le_bytes(from.try_into().map_err(|_| Malformed)?);
        let stamp = Stamp::from_number(u64::from_le_bytes(*stamp));
        let _ = self.copy_slice(key, stamp, from as usize, out, now);
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

/// The command of a line, with the first of its keys.
fn ask_of(line: &[u8], now: Seconds) -> Result<Ask<'_>, Malformed> {
    match parse(line, now) {
        Command::Ask(ask) => Ok(ask),
        Command::Keys(keys) => Ok(Ask::Get {
            key: each(&line[keys.at..]).next().ok_or(Malformed)?,
            with_version: keys.with_version,
            touch: keys.touch,
        }),
        _ => Err(Malformed),
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
