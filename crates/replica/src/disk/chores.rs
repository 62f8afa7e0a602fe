//! Work for a disk that no write waits for: the question whether there is room for items, deleting
//! files, and freeing images. Each may take long: to delete files, the engine first copies what it
//! still needs of them, and the kernel takes tens of milliseconds to reclaim a GiB of memory.
//!
//! The store says what there is to do. A real disk has a thread for it; a simulated disk does it
//! between two writes. The engine lets one thread delete files while another one writes. Called by
//! `store` and `thread`.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use raft_engine::Engine;
use raft_engine::env::FileSystem;

use super::files::has_room;
use super::store::{fail, is_no_room};

/// The most bytes of an image that are freed together.
const FREED: usize = 1 << 20;

/// Something to do.
#[derive(Debug)]
pub(super) enum Chore {
    /// Find out whether the disk has room for items and for a file of the log after them.
    Ask {
        /// The last entry that the items contain.
        applied: u64,
        /// The bytes of both.
        bytes: u64,
    },
    /// Let the engine delete files that are no longer needed.
    Purge,
    /// Free an image.
    Free(Vec<u8>),
}

/// The answer to [`Chore::Ask`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Answer {
    pub(super) applied: u64,
    pub(super) has_room: bool,
}

/// Does the chores of a store.
pub(super) struct Helper<F: FileSystem> {
    engine: Arc<Engine<F>>,
    files: Arc<F>,
    /// A file that exists only while the helper asks whether the disk has room.
    room: PathBuf,
    /// A purge is queued.
    purges: Arc<AtomicBool>,
}

impl<F: FileSystem> Helper<F> {
    pub(super) fn new(engine: Arc<Engine<F>>, files: Arc<F>, room: PathBuf) -> Self {
        Self {
            engine,
            files,
            room,
            purges: Arc::default(),
        }
    }

    /// Makes a purge, unless one is queued already.
    pub(super) fn purge(&self) -> Option<Chore> {
        let is_queued = self.purges.swap(true, Ordering::Relaxed);
        (!is_queued).then_some(Chore::Purge)
    }

    /// Does a chore.
    ///
    /// # Panics
    /// If the disk fails.
    pub(super) fn run(&self, chore: Chore) -> Option<Answer> {
        match chore {
            Chore::Ask { applied, bytes } => {
                let has_room = has_room(&*self.files, &self.room, bytes);
                let has_room = has_room
                    .unwrap_or_else(|error| panic!("the disk does not report its room: {error}"));
                return Some(Answer { applied, has_room });
            }
            Chore::Purge => {
                self.purges.store(false, Ordering::Relaxed);
                match self.engine.purge_expired_files() {
                    Err(error) if !is_no_room(&error) => fail(&error),
                    _ => {}
                }
            }
            Chore::Free(image) => free(image),
        }
        None
    }
}

impl<F: FileSystem> Clone for Helper<F> {
    fn clone(&self) -> Self {
        Self {
            engine: Arc::clone(&self.engine),
            files: Arc::clone(&self.files),
            room: self.room.clone(),
            purges: Arc::clone(&self.purges),
        }
    }
}

impl<F: FileSystem> std::fmt::Debug for Helper<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Helper")
            .field("room", &self.room)
            .finish_non_exhaustive()
    }
}

/// Frees an image in slices: while the kernel reclaims memory, other threads of the process may
/// have to wait for more.
fn free(mut image: Vec<u8>) {
    while !image.is_empty() {
        image.truncate(image.len().saturating_sub(FREED));
        image.shrink_to_fit();
    }
}
