//! The files of a server: one for each epoch, with two slots that are written alternately.
//!
//! Invariants, which ensure that no number is given twice:
//!
//! - A number is given only after a slot that reserves it was synced. A slot torn by a crash was
//!   never synced, so no number that only it reserves was given.
//! - No slot raises a limit by more than the `raise` that both slots of its file contain. If a slot
//!   cannot be read, because a crash has torn it or it has decayed, a restart begins `raise` above
//!   the limits of the other slot. So the restart need not know which of the two has happened.
//! - A slot raises the limit of a sequence only after the file's other slot was synced with the
//!   lower limit.
//! - A server that takes over makes its file before it knows the last limits of the previous
//!   server. Its slots name that epoch until it has read them, and no file that a slot names is
//!   removed.
//!
//! Read and written by the procedures in `disk.rs`, for the machine in `machine.rs`.

use std::fmt;

use crate::wire::cursor::Cursor;
use crate::wire::{MAX_NAME, MAX_SEQUENCES, Name};

/// The version of the files.
pub const FORMAT: u16 = 1;

/// Bytes of a slot.
pub(crate) const SLOT: usize = 32 << 10;

/// Bytes of a file: two slots.
pub(crate) const FILE: usize = 2 * SLOT;

const MAGIC: [u8; 4] = *b"DSEQ";
/// Bytes before the sequences: magic, format, count, checksum, generation, lease, raise, epoch,
/// process, epoch before, 0.
const HEAD: usize = 56;
/// The checksum covers the bytes that follow it.
const CHECKED_FROM: usize = 16;

const _: () = assert!(HEAD + MAX_SEQUENCES * (1 + MAX_NAME + 8) <= SLOT);

/// The content of a slot.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct State {
    /// The server's epoch, which is also in the file's name.
    pub(crate) epoch: u32,
    /// Increases by one with each slot that is written.
    pub(crate) generation: u64,
    /// The server's process, for messages.
    pub(crate) process: u32,
    /// The server stops this long after it last found that no other server has taken over.
    pub(crate) lease_ns: u64,
    /// The most by which a slot raises a limit.
    pub(crate) raise: u64,
    /// An epoch whose limits are not in this state yet; 0 if none.
    pub(crate) before: u32,
    /// Sequences, each with its limit: numbers below it may have been given.
    pub(crate) sequences: Vec<(Name, u64)>,
}

/// The reason why a file cannot be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Damage {
    /// A newer version of this program has written it.
    Newer(u16),
    /// Neither slot can be read, or the file has another length.
    Unreadable,
    /// It needs the file of this epoch, which is gone.
    Missing(u32),
    /// It is the file of this epoch, under another name.
    Misnamed(u32),
}

enum Slot {
    Good(State),
    Newer(u16),
    Bad,
}

impl State {
    /// Encodes a slot.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(SLOT);
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&FORMAT.to_le_bytes());
        let count = u16::try_from(self.sequences.len()).expect("a server has at most 256");
        out.extend_from_slice(&count.to_le_bytes());
        out.extend_from_slice(&[0; 8]);
        for number in [self.generation, self.lease_ns, self.raise] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        for number in [self.epoch, self.process, self.before, 0] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        debug_assert_eq!(out.len(), HEAD);
        for (name, limit) in &self.sequences {
            let name = name.as_str().as_bytes();
            out.push(u8::try_from(name.len()).expect("a name is short"));
            out.extend_from_slice(name);
            out.extend_from_slice(&limit.to_le_bytes());
        }
        out.resize(SLOT, 0);
        seal(&mut out);
        out
    }

    /// Encodes a new file: this state in both slots.
    pub(crate) fn encode_file(&self) -> Vec<u8> {
        let mut out = self.encode();
        out.extend_from_within(..);
        out
    }

    /// Reads the state of a file. If one of its slots cannot be read, the limits of the other slot
    /// are raised.
    ///
    /// # Errors
    /// [`Damage`].
    pub(crate) fn recover(bytes: &[u8]) -> Result<Self, Damage> {
        let slots = match bytes.split_at_checked(SLOT) {
            Some((first, second)) => [read(first), read(second)],
            None => [read(bytes), Slot::Bad],
        };
        match slots {
            [Slot::Newer(version), _] | [_, Slot::Newer(version)] => Err(Damage::Newer(version)),
            [Slot::Bad, Slot::Bad] => Err(Damage::Unreadable),
            _ if bytes.len() != FILE => Err(Damage::Unreadable),
            [Slot::Good(first), Slot::Good(second)] => Ok(newer(first, second)),
            [Slot::Good(one), Slot::Bad] | [Slot::Bad, Slot::Good(one)] => Ok(one.raised()),
        }
    }

    /// Like [`Self::recover`], for the file that has the name of this epoch.
    ///
    /// # Errors
    /// [`Damage`].
    pub(crate) fn recover_of(epoch: u32, bytes: &[u8]) -> Result<Self, Damage> {
        let state = Self::recover(bytes)?;
        match state.epoch == epoch {
            true => Ok(state),
            false => Err(Damage::Misnamed(state.epoch)),
        }
    }

    /// This state, with the highest limits that the next slot may have had.
    fn raised(mut self) -> Self {
        for (_, limit) in &mut self.sequences {
            *limit = limit.saturating_add(self.raise);
        }
        self
    }

    /// Takes over the state of the previous epoch: for each sequence of either, the larger limit;
    /// the longer lease; and the epoch before that one.
    pub(crate) fn join(&mut self, other: &Self) {
        self.before = other.before;
        self.lease_ns = self.lease_ns.max(other.lease_ns);
        for (name, limit) in &other.sequences {
            match self.sequences.iter_mut().find(|(own, _)| own == name) {
                Some((_, own)) => *own = (*own).max(*limit),
                None => self.sequences.push((name.clone(), *limit)),
            }
        }
    }
}

/// Writes the checksum of a slot.
pub(crate) fn seal(slot: &mut [u8]) {
    let sum = checksum(&slot[CHECKED_FROM..]);
    slot[8..CHECKED_FROM].copy_from_slice(&sum.to_le_bytes());
}

fn newer(first: State, second: State) -> State {
    match first.generation >= second.generation {
        true => first,
        false => second,
    }
}

fn read(bytes: &[u8]) -> Slot {
    let version = match bytes {
        [b'D', b'S', b'E', b'Q', low, high, ..] => u16::from_le_bytes([*low, *high]),
        _ => return Slot::Bad,
    };
    if version > FORMAT {
        return Slot::Newer(version);
    }
    match decode(bytes) {
        Some(state) if version == FORMAT => Slot::Good(state),
        _ => Slot::Bad,
    }
}

fn decode(bytes: &[u8]) -> Option<State> {
    let mut cursor = Cursor(bytes);
    cursor.take::<6>().ok()?;
    let count = cursor.u16().ok()?;
    let sum = cursor.u64().ok()?;
    if bytes.len() != SLOT || checksum(&bytes[CHECKED_FROM..]) != sum {
        return None;
    }
    let [generation, lease_ns, raise] = [cursor.u64(), cursor.u64(), cursor.u64()];
    let [epoch, process] = [cursor.u32(), cursor.u32()];
    let [before, _] = [cursor.u32(), cursor.u32()];
    // A server's limits never come from its own epoch or a later one, and it has few sequences.
    if before.ok()? >= epoch.ok()? || usize::from(count) > MAX_SEQUENCES {
        return None;
    }
    let mut sequences = Vec::new();
    for _ in 0..count {
        let len = cursor.u8().ok()?;
        let name = Name::from_bytes(cursor.bytes(len.into()).ok()?).ok()?;
        sequences.push((name, cursor.u64().ok()?));
    }
    Some(State {
        epoch: epoch.ok()?,
        generation: generation.ok()?,
        process: process.ok()?,
        lease_ns: lease_ns.ok()?,
        raise: raise.ok()?,
        before: before.ok()?,
        sequences,
    })
}

/// FNV-1a over 8-byte words, with a final mixing step, so that each bit of a word affects every
/// byte of the sum.
fn checksum(bytes: &[u8]) -> u64 {
    let mut sum: u64 = 0xcbf2_9ce4_8422_2325;
    let (words, rest) = bytes.as_chunks::<8>();
    let words = words.iter().map(|word| u64::from_le_bytes(*word));
    for word in words.chain(rest.iter().map(|byte| u64::from(*byte))) {
        sum = (sum ^ word).wrapping_mul(0x0000_0100_0000_01b3);
        sum ^= sum >> 29;
    }
    sum ^ (sum >> 32)
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Newer(version) => write!(
                f,
                "a newer program has written it, in version {version} of the format; this one \
                 reads version {FORMAT}"
            ),
            Self::Missing(epoch) => write!(f, "it needs the file of epoch {epoch}, which is gone"),
            Self::Misnamed(epoch) => write!(f, "it is the file of epoch {epoch}, under this name"),
            Self::Unreadable => f.write_str(
                "it is cut off or damaged, and neither of its two copies can be read; restore it \
                 from a backup only if no number was given since",
            ),
        }
    }
}

impl std::error::Error for Damage {}

#[cfg(test)]
mod tests;
