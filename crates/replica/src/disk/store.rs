//! Log and items on TiKV's `raft-engine`.
//!
//! Invariants: each write of the engine is synced before the next one begins, so a crash damages
//! the last write at most, which the engine detects and drops when it starts. A log that has lost
//! more ends before its mark (`mark.rs`), and is refused. The record of the state (`state.rs`) is
//! part of the write whose entries it counts. Parts of items are entries of a second group, and are
//! synced with the record that names them, or before it. Parts that no record will name are
//! overwritten, or dropped by the next compaction.
//!
//! While items are being saved, each save of log writes has a part of them, too. So they need no
//! sync of their own, and get on however fast writes arrive.
//!
//! A checkpoint begins only if the disk has room for all of it, and is abandoned if it does not
//! fit. The log then keeps its length. So items that are too large for the disk never prevent a
//! write that fits.
//!
//! Work that no write waits for is left to the caller as chores (`chores.rs`).
//!
//! Panics of the engine are not caught. It panics when a sync fails, and its own state is then
//! undefined. Called by `thread`, and by simulated disks.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use raft_engine::env::FileSystem;
use raft_engine::{Command, Config, Engine, Error, LogBatch, ReadableSize, RecoveryMode};

use super::chores::{Answer, Chore, Helper};
use super::files::is_full;
use super::mark::Mark;
use super::newer::NewerPart;
use super::reading::read_alone;
use super::record::{Record, Records};
use super::state::{Parts, State};
use crate::work::{Items, LogWrite, Remains};

/// The engine's group of the log's entries.
pub(super) const LOG: u64 = 1;
/// The engine's group of the parts of items.
pub(super) const ITEMS: u64 = 2;
/// The key of the state's record, in the group of the log.
pub(super) const STATE: &[u8] = b"state";
/// A part of items that is saved with writes has at least this share of their bytes. So while items
/// are saved, the log grows by four times their bytes at most, and a write takes a quarter longer.
const SHARE: usize = 4;
/// No write is saved before a leader's items, so their parts are larger by this factor, which saves
/// syncs.
const ALONE: usize = 8;

/// Sizes of the engine's files.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// A file that exceeds this size gets no further write.
    pub file_bytes: u64,
    /// If all files together exceed this size, the engine moves live data out of the oldest files
    /// and deletes them. At least `file_bytes`.
    pub purge_bytes: u64,
    /// Bytes of a part of items: few, because writes wait for the sync that they share with it.
    pub part_bytes: usize,
}

impl Limits {
    /// The limits of a real disk.
    pub const DEFAULT: Self = Self {
        file_bytes: 32 << 20,
        purge_bytes: 128 << 20,
        part_bytes: 128 << 10,
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
    /// The disk has room for them.
    has_room: bool,
    first: u64,
    offset: usize,
}

/// Log and items of a replica.
pub struct Store<F: FileSystem> {
    engine: Arc<Engine<F>>,
    helper: Helper<F>,
    mark: Mark<F>,
    state: State,
    saving: Option<Saving>,
    next_part: u64,
    limits: Limits,
    checkpoints: u64,
    chores: Vec<Chore>,
    /// The number of questions for room that have no answer yet.
    asked: usize,
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
        let engine = Arc::new(Engine::open_with_file_system(config, Arc::clone(&files))?);
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
            helper: Helper::new(Arc::clone(&engine), files, folder.with_extension("room")),
            engine,
            mark,
            state,
            saving: None,
            limits,
            checkpoints: 0,
            chores: Vec::new(),
            asked: 0,
            syncs: true,
        };
        Ok((store, found.map(|it| it.1)))
    }

    /// Plants the bug that nothing is synced.
    #[cfg(feature = "mutants")]
    pub fn never_sync(&mut self) {
        self.syncs = false;
    }

    /// Writes and syncs some writes together, and the next part of the items that are being saved.
    /// With the last part, the items count, and entries that the log need not keep are dropped. If
    /// the disk has room for the writes but not for the part, the store abandons the items, and the
    /// log keeps its length.
    ///
    /// # Errors
    /// [`Full`]: none of the writes counts. The caller may try them again, together with later
    /// ones.
    ///
    /// # Panics
    /// If the disk fails.
    pub fn save(&mut self, writes: &[LogWrite]) -> Result<(), Full> {
        let has_items = writes.iter().any(|write| write.items.is_some());
        let has_part = self.has_part() && !has_items;
        if has_part && self.save_with_part(writes).is_ok() {
            return Ok(());
        }
        let next_part = self.next_part;
        let saved = match writes.is_empty() {
            true => Ok(()),
            false => self.save_alone(writes),
        };
        match saved {
            Ok(()) if has_part => self.give_up(),
            Ok(()) => {}
            // The next attempt overwrites the parts of this one.
            Err(Full) => self.next_part = next_part,
        }
        saved
    }

    /// Saves writes and the next part of the items.
    fn save_with_part(&mut self, writes: &[LogWrite]) -> Result<(), Full> {
        let Some(mut saving) = self.saving.take() else {
            return Ok(());
        };
        let saved = self.save_both(writes, &mut saving);
        match saving.offset < saving.items.image.len() {
            true => self.saving = Some(saving),
            false => {
                self.drop_items(saving.items);
                self.purge();
            }
        }
        saved
    }

    fn save_both(&mut self, writes: &[LogWrite], saving: &mut Saving) -> Result<(), Full> {
        let mut state = self.state.clone();
        let mut batch = LogBatch::default();
        for write in writes {
            add(&mut batch, &mut state, write);
        }
        let entries = writes.iter().flat_map(|write| &write.entries);
        let written: usize = entries.map(|entry| entry.data.len()).sum();
        let most = self.limits.part_bytes.max(written / SHARE);
        let end = saving.items.image.len().min(saving.offset + most);
        let part = &saving.items.image[saving.offset..end];
        add_part(&mut batch, self.next_part, part);
        if end == saving.items.image.len() {
            let parts = Parts {
                applied: saving.items.applied,
                first: saving.first,
                last: self.next_part,
            };
            state.on_checkpoint(saving.items.base, parts);
            drop_entries(&mut batch, &state);
        }
        self.write(batch, state)?;
        self.next_part += 1;
        saving.offset = end;
        Ok(())
    }

    /// Saves writes without a part of the items that are being saved.
    fn save_alone(&mut self, writes: &[LogWrite]) -> Result<(), Full> {
        let mut state = self.state.clone();
        let mut batch = LogBatch::default();
        for write in writes {
            if let Some(items) = &write.items {
                let parts = self.save_parts(items)?;
                state.on_restore(items.base, parts);
                drop_entries(&mut batch, &state);
                self.drop_checkpoint(items.applied);
            }
            add(&mut batch, &mut state, write);
        }
        self.write(batch, state)
    }

    /// Begins to save items, of which each [`Self::save`] saves a part once a
    /// [chore](Self::do_chores) has found that the disk has room for them. Drops earlier items that
    /// are not saved yet.
    pub fn begin(&mut self, items: Items) {
        self.drop_checkpoint(u64::MAX);
        if items.applied <= self.state.items().applied {
            return self.drop_items(items);
        }
        self.asked += 1;
        self.chores.push(Chore::Ask {
            applied: items.applied,
            bytes: items.image.len() as u64 + self.limits.file_bytes,
        });
        self.saving = Some(Saving {
            items,
            has_room: false,
            first: self.next_part,
            offset: 0,
        });
    }

    /// Takes the answer to a question. Without room, the store abandons the items.
    pub(super) fn on_answer(&mut self, answer: Answer) {
        self.asked -= 1;
        let Some(saving) = &mut self.saving else {
            return;
        };
        match saving.items.applied == answer.applied {
            true if answer.has_room => saving.has_room = true,
            true => self.give_up(),
            false => {}
        }
    }

    /// Whether a question for room has no answer yet. The question itself takes the room for a
    /// moment, so a write that finds none meanwhile does not show that the disk is full.
    pub(super) const fn asks(&self) -> bool {
        self.asked > 0
    }

    /// Whether [`Self::save`] has a part of items to save, even without a write.
    #[must_use]
    pub fn has_part(&self) -> bool {
        self.saving.as_ref().is_some_and(|saving| saving.has_room)
    }

    /// The number of checkpoints that were saved, replaced by later ones, or abandoned.
    #[must_use]
    pub const fn checkpoints(&self) -> u64 {
        self.checkpoints
    }

    /// Takes the chores that have come up, for a helper in any thread.
    pub(super) fn take_chores(&mut self) -> Vec<Chore> {
        std::mem::take(&mut self.chores)
    }

    /// Makes the helper that does the chores.
    pub(super) fn helper(&self) -> Helper<F> {
        self.helper.clone()
    }

    /// Does all chores.
    ///
    /// # Panics
    /// If the disk fails.
    pub fn do_chores(&mut self) {
        while !self.chores.is_empty() {
            for chore in self.take_chores() {
                if let Some(answer) = self.helper.run(chore) {
                    self.on_answer(answer);
                }
            }
        }
    }

    /// Frees an image that a write has brought, as a chore.
    pub(super) fn discard(&mut self, image: Vec<u8>) {
        self.chores.push(Chore::Free(image));
    }

    /// Asks for the deletion of files that are no longer needed.
    pub(super) fn purge(&mut self) {
        self.chores.extend(self.helper.purge());
    }

    fn drop_items(&mut self, items: Items) {
        self.checkpoints += 1;
        self.discard(items.image);
    }

    /// Abandons items that do not fit. The next items overwrite their parts.
    fn give_up(&mut self) {
        if let Some(saving) = self.saving.take() {
            self.next_part = saving.first;
            self.drop_items(saving.items);
            self.purge();
        }
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
        if let Some(saving) = self.saving.take_if(|it| it.items.applied <= applied) {
            self.drop_items(saving.items);
        }
    }

    /// Saves all parts of a leader's items. No record counts them yet.
    fn save_parts(&mut self, items: &Items) -> Result<Parts, Full> {
        let first = self.next_part;
        for part in items.image.chunks(self.limits.part_bytes * ALONE) {
            let mut batch = LogBatch::default();
            add_part(&mut batch, self.next_part, part);
            self.append(&mut batch)?;
            self.next_part += 1;
        }
        Ok(Parts {
            applied: items.applied,
            first,
            last: self.next_part - 1,
        })
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

/// Adds the entries and promises of a write to a batch.
fn add(batch: &mut LogBatch, state: &mut State, write: &LogWrite) {
    state.on_write(write);
    let records: Vec<Record> = write.entries.iter().map(Record::of).collect();
    let added = batch.add_entries::<Records>(LOG, &records);
    added.expect("one batch stays below the engine's 2 GiB: a leader has 64 MiB in progress");
}

/// Adds a part of items to a batch.
fn add_part(batch: &mut LogBatch, number: u64, part: &[u8]) {
    let added = batch.add_entries::<Records>(ITEMS, &[Record::part(number, part)]);
    added.expect("a part is small");
}

/// Drops the entries and parts that no longer count.
fn drop_entries(batch: &mut LogBatch, state: &State) {
    let index = state.base().0 + 1;
    batch.add_command(LOG, Command::Compact { index });
    let index = state.items().first;
    batch.add_command(ITEMS, Command::Compact { index });
}

pub(super) fn is_no_room(error: &Error) -> bool {
    match error {
        Error::Io(error) => is_full(error),
        Error::TryAgain(_) => true,
        _ => false,
    }
}

pub(super) fn fail(error: &Error) -> ! {
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

pub(super) fn incomplete(why: &str) -> Loss {
    Loss::Incomplete(why.to_owned())
}
