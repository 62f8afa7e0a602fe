//! Log and items on TiKV's `raft-engine`.
//!
//! Invariants: each write of the engine is synced before the next one begins, so a crash damages
//! the last write at most, which the engine detects and drops when it starts. A log that has lost
//! more ends before its mark (`mark.rs`), and is refused. The record of the state (`state.rs`) is
//! part of the write whose entries it counts. Parts of items are entries of a second group, and are
//! synced before a record names them. Parts that no record will name are overwritten, or dropped by
//! the next compaction.
//!
//! A checkpoint begins only if the disk has room for all of it, and is abandoned if it does not
//! fit. The log then keeps its length. So items that are too large for the disk never prevent a
//! write that fits.
//!
//! Panics of the engine are not caught. It panics when a sync fails, and its own state is then
//! undefined. Called by `thread`, and by simulated disks.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use raft::eraftpb::Entry;
use raft_engine::env::FileSystem;
use raft_engine::{Command, Config, Engine, Error, LogBatch, ReadableSize, RecoveryMode};

use super::files::{has_room, is_full};
use super::mark::Mark;
use super::newer::NewerPart;
use super::record::{Record, Records};
use super::state::{Parts, State};
use crate::work::{Items, LogWrite, Remains};

/// The engine's group of the log's entries.
const LOG: u64 = 1;
/// The engine's group of the parts of items.
const ITEMS: u64 = 2;
/// The key of the state's record, in the group of the log.
const STATE: &[u8] = b"state";

/// Sizes of the engine's files.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// A file that exceeds this size gets no further write.
    pub file_bytes: u64,
    /// If all files together exceed this size, the engine moves live data out of the oldest files
    /// and deletes them. At least `file_bytes`.
    pub purge_bytes: u64,
    /// Bytes of a part of items.
    pub part_bytes: usize,
}

impl Limits {
    /// The limits of a real disk.
    pub const DEFAULT: Self = Self {
        file_bytes: 32 << 20,
        purge_bytes: 128 << 20,
        part_bytes: 1 << 20,
    };
}

/// The reason why a log cannot be read.
#[derive(Debug)]
pub enum Loss {
    /// The file system refuses, or has no room.
    Unreadable(io::Error),
    /// Something is missing or damaged; the text says what.
    Incomplete(String),
    /// A newer version of this library has written it.
    Newer(NewerPart),
    /// An older version of this library has written it: its format, and the format that this
    /// version reads.
    Older(u8, u8),
}

impl From<Error> for Loss {
    fn from(error: Error) -> Self {
        match error {
            Error::Io(error) => Self::Unreadable(error),
            other => Self::Incomplete(other.to_string()),
        }
    }
}

/// The disk is full; nothing was written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Full;

/// Items that are being written to the disk.
struct Saving {
    items: Items,
    first: u64,
    offset: usize,
}

/// Log and items of a replica.
pub struct Store<F: FileSystem> {
    engine: Engine<F>,
    files: Arc<F>,
    /// A file that exists only while the store asks whether the disk has room.
    room: PathBuf,
    mark: Mark<F>,
    state: State,
    saving: Option<Saving>,
    next_part: u64,
    limits: Limits,
    checkpoints: u64,
    syncs: bool,
}

impl<F: FileSystem> Store<F> {
    /// Opens the log in a directory, and makes the directory if its parent exists. `first`, an
    /// index and a term, is the place before the first entry of a log that has dropped none yet.
    ///
    /// # Errors
    /// [`Loss`]: the files cannot be read, another process has them, an entry that the record of
    /// the state counts is missing, the log ends before a write that was acknowledged, or another
    /// version has written the record. A torn last write is no loss, because it was never
    /// acknowledged.
    ///
    /// # Panics
    /// If the engine panics.
    pub fn open(
        folder: &Path,
        files: Arc<F>,
        limits: Limits,
        first: (u64, u64),
    ) -> Result<(Self, Option<Remains>), Loss> {
        let config = Config {
            dir: folder.display().to_string(),
            recovery_mode: RecoveryMode::TolerateTailCorruption,
            recovery_threads: 1,
            // Waiting for the disk costs less than compressing first, which takes a burst of CPU
            // time.
            batch_compression_threshold: ReadableSize(0),
            target_file_size: ReadableSize(limits.file_bytes),
            purge_threshold: ReadableSize(limits.purge_bytes),
            // With recycled files, recovery would have to tell old bytes after the new ones from
            // new bytes.
            enable_log_recycle: false,
            ..Config::default()
        };
        let engine = Engine::open_with_file_system(config, Arc::clone(&files))?;
        let mark = Mark::open(&mark_of(folder), &*files).map_err(Loss::Unreadable)?;
        let mark = mark.map_err(|_| incomplete("the mark of its last write is damaged"))?;
        let found = read_alone(&engine, first)?;
        let state = found
            .as_ref()
            .map_or_else(State::default, |it| it.0.clone());
        if state.number() < mark.number() {
            return Err(lost(state.number(), mark.number()));
        }
        let store = Self {
            next_part: engine.last_index(ITEMS).map_or(1, |last| last + 1),
            engine,
            files,
            room: folder.with_extension("room"),
            mark,
            state,
            saving: None,
            limits,
            checkpoints: 0,
            syncs: true,
        };
        Ok((store, found.map(|it| it.1)))
    }

    /// Plants the bug that nothing is synced.
    #[cfg(feature = "mutants")]
    pub fn never_sync(&mut self) {
        self.syncs = false;
    }

    /// Writes and syncs some writes together.
    ///
    /// # Errors
    /// [`Full`]: none of the writes counts. The caller may try them again, together with later
    /// ones.
    ///
    /// # Panics
    /// If the disk fails.
    pub fn save(&mut self, writes: &[LogWrite]) -> Result<(), Full> {
        let next_part = self.next_part;
        let saved = self.save_all(writes);
        if saved.is_err() {
            // The next attempt overwrites the parts of this one.
            self.next_part = next_part;
        }
        saved
    }

    fn save_all(&mut self, writes: &[LogWrite]) -> Result<(), Full> {
        let mut state = self.state.clone();
        let mut batch = LogBatch::default();
        for write in writes {
            if let Some(items) = &write.items {
                let parts = self.save_parts(items)?;
                state.on_restore(items.base, parts);
                drop_entries(&mut batch, &state);
                self.drop_checkpoint(items.applied);
            }
            state.on_write(write);
            let records: Vec<Record> = write.entries.iter().map(Record::of).collect();
            let added = batch.add_entries::<Records>(LOG, &records);
            added.expect(
                "one batch stays below the engine's 2 GiB: a leader has 64 MiB in progress",
            );
        }
        self.write(batch, state)
    }

    /// Begins to save items; [`Self::save_part`] saves their parts. Drops earlier items that are
    /// not saved yet.
    pub fn begin(&mut self, items: Items) {
        self.drop_checkpoint(u64::MAX);
        if items.applied <= self.state.items().applied {
            self.checkpoints += 1;
            return;
        }
        self.saving = Some(Saving {
            items,
            first: self.next_part,
            offset: 0,
        });
    }

    /// Whether items are being saved.
    #[must_use]
    pub const fn is_saving(&self) -> bool {
        self.saving.is_some()
    }

    /// The number of checkpoints that were saved, replaced by later ones, or abandoned.
    #[must_use]
    pub const fn checkpoints(&self) -> u64 {
        self.checkpoints
    }

    /// Saves the next part of the items. After the last part, the items count, and entries that the
    /// log need not keep are dropped. If the disk has no room for the items, the store abandons
    /// them, and the log keeps its length.
    ///
    /// # Panics
    /// If the disk fails.
    pub fn save_part(&mut self) {
        let Some(mut saving) = self.saving.take() else {
            return;
        };
        let is_first = saving.offset == 0;
        let result = match saving.offset < saving.items.image.len() {
            true if is_first && !self.has_room_for(&saving.items) => Err(Full),
            true => self.save_next(&mut saving),
            false => self.finish(&saving),
        };
        match result {
            Err(Full) => self.give_up(&saving),
            Ok(()) if self.state.items().applied >= saving.items.applied => {}
            Ok(()) => self.saving = Some(saving),
        }
    }

    /// Whether the disk has room for items, and for a file of the log after them.
    fn has_room_for(&self, items: &Items) -> bool {
        let bytes = items.image.len() as u64 + self.limits.file_bytes;
        let has_room = has_room(&*self.files, &self.room, bytes);
        has_room.unwrap_or_else(|error| panic!("the disk does not report its free space: {error}"))
    }

    /// Abandons items that do not fit. The next items overwrite their parts.
    fn give_up(&mut self, saving: &Saving) {
        self.next_part = saving.first;
        self.checkpoints += 1;
        self.purge();
    }

    /// Notes that the replica learns of all writes so far, which are synced. From now on, a log
    /// that ends before them is refused.
    ///
    /// # Panics
    /// If the disk fails.
    pub fn acknowledge(&mut self) {
        if let Err(error) = self.mark.set(self.state.number()) {
            panic!("the disk cannot save the mark of the log: {error}");
        }
    }

    /// Lets the engine delete files that are no longer needed.
    ///
    /// # Panics
    /// If the disk fails.
    pub fn purge(&self) {
        match self.engine.purge_expired_files() {
            Err(error) if !is_no_room(&error) => fail(&error),
            _ => {}
        }
    }

    /// The size of the engine's files; the last one counts in full.
    #[must_use]
    pub fn used(&self) -> usize {
        self.engine.get_used_size()
    }

    /// The number of parts of items that the engine has.
    #[cfg(test)]
    pub(super) fn parts(&self) -> u64 {
        let first = self.engine.first_index(ITEMS);
        let last = self.engine.last_index(ITEMS);
        first.zip(last).map_or(0, |(first, last)| last + 1 - first)
    }

    fn drop_checkpoint(&mut self, applied: u64) {
        let is_old = |it: &mut Saving| it.items.applied <= applied;
        if self.saving.take_if(is_old).is_some() {
            self.checkpoints += 1;
        }
    }

    /// Saves all parts of some items. No record counts them yet.
    fn save_parts(&mut self, items: &Items) -> Result<Parts, Full> {
        let mut saving = Saving {
            items: items.clone(),
            first: self.next_part,
            offset: 0,
        };
        while saving.offset < items.image.len() {
            self.save_next(&mut saving)?;
        }
        Ok(self.parts_of(&saving))
    }

    fn save_next(&mut self, saving: &mut Saving) -> Result<(), Full> {
        let rest = &saving.items.image[saving.offset..];
        let part = &rest[..rest.len().min(self.limits.part_bytes)];
        let mut batch = LogBatch::default();
        let record = Record::part(self.next_part, part);
        let added = batch.add_entries::<Records>(ITEMS, &[record]);
        added.expect("a part is small");
        self.append(&mut batch)?;
        self.next_part += 1;
        saving.offset += part.len();
        Ok(())
    }

    const fn parts_of(&self, saving: &Saving) -> Parts {
        Parts {
            applied: saving.items.applied,
            first: saving.first,
            last: self.next_part - 1,
        }
    }

    fn finish(&mut self, saving: &Saving) -> Result<(), Full> {
        let mut state = self.state.clone();
        state.on_checkpoint(saving.items.base, self.parts_of(saving));
        let mut batch = LogBatch::default();
        drop_entries(&mut batch, &state);
        self.write(batch, state)?;
        self.checkpoints += 1;
        self.purge();
        Ok(())
    }

    /// Writes a batch together with the resulting state.
    fn write(&mut self, mut batch: LogBatch, mut state: State) -> Result<(), Full> {
        state.count();
        let put = batch.put(LOG, STATE.to_vec(), state.to_bytes());
        put.expect("the engine does not keep this key for itself");
        self.append(&mut batch)?;
        self.state = state;
        Ok(())
    }

    fn append(&self, batch: &mut LogBatch) -> Result<(), Full> {
        match self.engine.write(batch, self.syncs) {
            Ok(_) => Ok(()),
            Err(error) if is_no_room(&error) => Err(Full),
            Err(error) => fail(&error),
        }
    }
}

impl<F: FileSystem> std::fmt::Debug for Store<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store")
            .field("state", &self.state)
            .field("checkpoints", &self.checkpoints)
            .finish_non_exhaustive()
    }
}

/// Drops the entries and parts that no longer count.
fn drop_entries(batch: &mut LogBatch, state: &State) {
    let index = state.base().0 + 1;
    batch.add_command(LOG, Command::Compact { index });
    let index = state.items().first;
    batch.add_command(ITEMS, Command::Compact { index });
}

fn is_no_room(error: &Error) -> bool {
    match error {
        Error::Io(error) => is_full(error),
        Error::TryAgain(_) => true,
        _ => false,
    }
}

fn fail(error: &Error) -> ! {
    panic!("the disk cannot save the log: {error}")
}

/// The file with the mark of a log.
fn mark_of(folder: &Path) -> PathBuf {
    folder.with_extension("mark")
}

fn lost(last: u64, acknowledged: u64) -> Loss {
    let all = format!("its log ends with write {last}, and write {acknowledged} was acknowledged");
    Loss::Incomplete(format!("{all}: the end of its last file is damaged"))
}

fn incomplete(why: &str) -> Loss {
    Loss::Incomplete(why.to_owned())
}

/// Reads in a thread of its own. For each thread, the engine caches the last block that it has
/// read, by its place in the log. This thread may have read another directory's log, and the engine
/// would then take the cached block for the block at the same place here.
fn read_alone<F: FileSystem>(
    engine: &Engine<F>,
    first: (u64, u64),
) -> Result<Option<(State, Remains)>, Loss> {
    let found = std::thread::scope(|scope| scope.spawn(|| read(engine, first)).join());
    found.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Reads the state, and everything that it counts.
fn read<F: FileSystem>(
    engine: &Engine<F>,
    first: (u64, u64),
) -> Result<Option<(State, Remains)>, Loss> {
    let Some(bytes) = engine.get(LOG, STATE) else {
        return Ok(None);
    };
    // The engine has verified the checksum.
    if let Some(newer) = State::newer(&bytes) {
        return Err(Loss::Newer(newer));
    }
    if let Some((format, known)) = State::older(&bytes) {
        return Err(Loss::Older(format, known));
    }
    let state = State::decode(&bytes);
    let mut state = state.map_err(|_| incomplete("the record of its state is damaged"))?;
    state.begin_at(first);
    let remains = Remains {
        promises: state.promises(),
        base: state.base(),
        entries: entries(engine, &state)?,
        items: items(engine, state.items())?,
    };
    Ok(Some((state, remains)))
}

fn entries<F: FileSystem>(engine: &Engine<F>, state: &State) -> Result<Vec<Entry>, Loss> {
    let (first, end) = (state.base().0 + 1, state.last() + 1);
    let mut records = Vec::new();
    let read = engine.fetch_entries_to::<Records>(LOG, first, end, None, &mut records);
    read.map_err(|error| incomplete(&format!("entries {first} to {}: {error}", end - 1)))?;
    let entries: Vec<Entry> = records.into_iter().map(Record::into_entry).collect();
    match entries.iter().map(|entry| entry.index).eq(first..end) {
        true => Ok(entries),
        false => Err(incomplete(&format!(
            "some of entries {first} to {} are gone",
            end - 1
        ))),
    }
}

fn items<F: FileSystem>(engine: &Engine<F>, parts: Parts) -> Result<Option<(u64, Vec<u8>)>, Loss> {
    if parts.applied == 0 {
        return Ok(None);
    }
    let mut image = Vec::new();
    for number in parts.first..=parts.last {
        let part = engine.get_entry::<Records>(ITEMS, number);
        let part =
            part.map_err(|error| incomplete(&format!("part {number} of the items: {error}")))?;
        let part =
            part.ok_or_else(|| incomplete(&format!("part {number} of the items is gone")))?;
        image.extend_from_slice(&part.bytes);
    }
    Ok(Some((parts.applied, image)))
}
