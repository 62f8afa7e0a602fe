//! The state of a server, as its operator sees it.

use super::cursor::Cursor;
use super::format::{MAX_SEQUENCES, Malformed, VERSION};
use super::name::{MAX_NAME, Name};

/// Whether a server gives numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Phase {
    /// It gives numbers.
    Serving = 0,
    /// It has taken over, and waits until the previous server has stopped.
    TakingOver = 1,
    /// It gives no numbers, because it could not check in time whether another server has taken
    /// over.
    Uncertain = 2,
    /// It no longer gives numbers.
    Ended = 3,
}

/// The state of a sequence.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Progress {
    /// Its name.
    pub name: Name,
    /// The next number.
    pub next: u64,
    /// Numbers below this are reserved on the disk.
    pub limit: u64,
}

/// The state of a server, and counts since its start.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Figures {
    /// Whether it gives numbers.
    pub phase: Phase,
    /// Its epoch.
    pub epoch: u32,
    /// Requests that got numbers.
    pub requests: u64,
    /// Numbers that were given.
    pub numbers: u64,
    /// How often reservations were written to the disk.
    pub saves: u64,
    /// Requests that had to wait for the disk.
    pub waits: u64,
    /// The sequences.
    pub sequences: Vec<Progress>,
}

const HEAD: usize = 40;

impl Figures {
    /// The most bytes of an answer.
    pub const MAX_SIZE: usize = HEAD + MAX_SEQUENCES * (1 + MAX_NAME + 16);

    /// The request, which has no fields.
    pub const REQUEST: [u8; 4] = [VERSION, 0, 0, 0];

    /// Encodes the answer.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let count = u16::try_from(self.sequences.len()).unwrap_or(u16::MAX);
        let mut out = vec![0, self.phase as u8];
        out.extend_from_slice(&count.to_le_bytes());
        out.extend_from_slice(&self.epoch.to_le_bytes());
        for number in [self.requests, self.numbers, self.saves, self.waits] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        for it in self.sequences.iter().take(count.into()) {
            let name = it.name.as_str().as_bytes();
            out.push(u8::try_from(name.len()).expect("a name is short"));
            out.extend_from_slice(name);
            out.extend_from_slice(&it.next.to_le_bytes());
            out.extend_from_slice(&it.limit.to_le_bytes());
        }
        out
    }

    /// Reads an answer.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut cursor = Cursor(bytes);
        let [zero, phase] = cursor.take()?;
        let phase = match (zero, phase) {
            (0, 0) => Phase::Serving,
            (0, 1) => Phase::TakingOver,
            (0, 2) => Phase::Uncertain,
            (0, 3) => Phase::Ended,
            _ => return Err(Malformed),
        };
        let (count, epoch) = (cursor.u16()?, cursor.u32()?);
        let [requests, numbers] = [cursor.u64()?, cursor.u64()?];
        let [saves, waits] = [cursor.u64()?, cursor.u64()?];
        let mut sequences = Vec::new();
        for _ in 0..count {
            let len = cursor.u8()?;
            let name = Name::from_bytes(cursor.bytes(len.into())?).map_err(|_| Malformed)?;
            let [next, limit] = [cursor.u64()?, cursor.u64()?];
            sequences.push(Progress { name, next, limit });
        }
        cursor.end()?;
        Ok(Self {
            phase,
            epoch,
            requests,
            numbers,
            saves,
            waits,
            sequences,
        })
    }
}
