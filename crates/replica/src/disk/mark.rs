//! The mark: the last write that the replica has acknowledged, in a file next to the log.
//!
//! The engine drops a damaged end of its last file, because a crash may have torn the last write.
//! Damage to writes that other replicas rely on looks the same. The mark distinguishes the two: a
//! log that ends before its mark has lost acknowledged writes. The mark is written after each sync,
//! before the replica learns of the sync. It is not synced itself, so it costs no further sync.
//! After a crash of the process it names the last write; after a power failure it may name an
//! earlier one, but never a later one.
//!
//! Marks alternate between two slots, so a torn mark leaves the previous one.
//!
//! | bytes of a slot | |
//! |---|---|
//! | 8 | "dunlinMk" |
//! | 8 | the number of the write |
//! | 8 | the FNV-1a hash of these two fields |
//!
//! Called by `store`.

use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::Arc;

use raft_engine::env::{FileSystem, Permission};

use super::files::is_full;

const MAGIC: &[u8; 8] = b"dunlinMk";
/// Bytes that are used in a slot.
const LEN: usize = 24;
/// The distance of the slots: a sector, which disks write as a whole.
const SLOT: usize = 512;

/// The mark of a log.
pub(super) struct Mark<F: FileSystem> {
    writer: F::Writer,
    number: u64,
    /// The slot for the next number.
    slot: usize,
}

/// Both slots are damaged.
#[derive(Debug)]
pub(super) struct Damaged;

impl<F: FileSystem> Mark<F> {
    /// Opens the mark in a file, and makes the file if it does not exist. The inner error means
    /// that no slot can be read, although both were written.
    pub(super) fn open(path: &Path, files: &F) -> io::Result<Result<Self, Damaged>> {
        let handle = match files.open(path, Permission::ReadWrite) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => files.create(path)?,
            opened => opened?,
        };
        let handle = Arc::new(handle);
        let mut bytes = Vec::new();
        let reader = files.new_reader(Arc::clone(&handle))?;
        reader.take(2 * SLOT as u64).read_to_end(&mut bytes)?;
        bytes.resize(2 * SLOT, 0);
        let slots = [0, SLOT].map(|start| &bytes[start..start + LEN]);
        let numbers = slots.map(decode);
        if numbers == [None; 2] && slots.iter().all(|slot| **slot != [0; LEN]) {
            return Ok(Err(Damaged));
        }
        let last = usize::from(numbers[1] > numbers[0]);
        Ok(Ok(Self {
            writer: files.new_writer(handle)?,
            number: numbers[last].unwrap_or(0),
            slot: 1 - last,
        }))
    }

    /// The number of the last write that is known to be acknowledged; 0 if none is.
    pub(super) const fn number(&self) -> u64 {
        self.number
    }

    /// Moves the mark forward. On a full disk it stays where it is.
    pub(super) fn set(&mut self, number: u64) -> io::Result<()> {
        if number <= self.number {
            return Ok(());
        }
        match self.write(&encode(number)) {
            Err(error) if is_full(&error) => Ok(()),
            Err(error) => Err(error),
            Ok(()) => {
                self.number = number;
                self.slot = 1 - self.slot;
                Ok(())
            }
        }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let place = (self.slot * SLOT) as u64;
        self.writer.seek(SeekFrom::Start(place))?;
        self.writer.write_all(bytes)
    }
}

fn encode(number: u64) -> Vec<u8> {
    let mut bytes = [&MAGIC[..], &number.to_le_bytes()].concat();
    let sum = fnv(bytes.iter());
    bytes.extend_from_slice(&sum.to_le_bytes());
    bytes
}

/// Decodes the number in a slot, if the slot is valid.
fn decode(slot: &[u8]) -> Option<u64> {
    let number = slot[MAGIC.len()..].first_chunk()?;
    let number = u64::from_le_bytes(*number);
    (encode(number) == slot).then_some(number)
}

/// FNV-1a.
fn fnv<'a>(bytes: impl Iterator<Item = &'a u8>) -> u64 {
    let mix = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    bytes.fold(0xcbf2_9ce4_8422_2325, mix)
}
