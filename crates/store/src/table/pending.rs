//! The writes of long values in progress: the stage of each, which its calls advance in `writing`.
//!
//! Invariant: a write in the list has a name of its own, and owns the pages of its stage.

use crate::classes::CHUNK;
use crate::config::{IDLE_SECONDS, MAX_VALUE, MOST_WRITINGS};
use crate::index::Place;
use crate::item::{Seconds, Stamp};
use crate::table::write::Verb;

/// How often a write begins again because the value to which it adds bytes was overwritten. The
/// next time, it is done in one piece.
const MOST_RESTARTS: u8 = 3;

/// Pages of the longest value.
pub(super) const MOST_PAGES: usize = MAX_VALUE.div_ceil(CHUNK);

/// A write of a long value in progress; the default names none. The caller keeps it between calls
/// of [`Table::write_part`](crate::Table::write_part).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Writing(u64);

/// Writes in progress, the oldest first.
#[derive(Debug)]
pub(super) struct Writings {
    pub(super) list: Vec<Pending>,
    /// The number of writes that were begun.
    begun: u64,
}

#[derive(Debug)]
pub(super) struct Pending {
    name: Writing,
    task: Task,
    stage: Stage,
    /// The value to which the write adds bytes, and how often that has changed.
    base: Option<Base>,
    restarts: u8,
    /// When the caller last continued the write.
    touched: Seconds,
}

/// The task of a write in progress. A caller that comes back with another one has given the first
/// one up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Task {
    /// The hash of its key.
    pub(super) key: u64,
    pub(super) verb: Verb,
    /// The length of the bytes that the caller gives.
    pub(super) len: usize,
}

/// The value to which a write adds bytes. One that is overwritten has another base, unless both are
/// equally long and too short for stamps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Base {
    pub(super) len: u32,
    pub(super) stamp: Option<Stamp>,
}

/// The progress of a write.
#[derive(Clone, Copy, Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "a table has few of them, and makes room for them at the start"
)]
pub(super) enum Stage {
    /// The log does not have enough room yet, after this number of calls.
    Room(u16),
    /// The item is at this place, with this position in the log, and this number of the value's
    /// bytes are copied.
    Logged {
        place: Place,
        position: u64,
        done: usize,
    },
    /// The value has these pages, and this number of them are full.
    Paged {
        pages: [u32; MOST_PAGES],
        full: usize,
    },
}

impl Writings {
    pub(super) fn new() -> Self {
        Self {
            list: Vec::with_capacity(MOST_WRITINGS),
            begun: 0,
        }
    }

    pub(super) fn stage(&self, name: Writing) -> Option<Stage> {
        let found = self.list.iter().find(|pending| pending.name == name);
        found.map(|pending| pending.stage)
    }

    pub(super) fn set_stage(&mut self, name: Writing, stage: Stage, now: Seconds) {
        if let Some(pending) = self.list.iter_mut().find(|pending| pending.name == name) {
            pending.stage = stage;
            pending.touched = now;
        }
    }

    /// Whether a write adds its bytes to another value than this one.
    pub(super) fn has_other_base(&self, name: Writing, base: Option<Base>) -> bool {
        let found = self.list.iter().find(|pending| pending.name == name);
        found.is_some_and(|pending| pending.base != base)
    }

    /// Takes a write's stage, because the write begins again on another value. `None` if it has
    /// begun too often.
    pub(super) fn restart(&mut self, name: Writing, base: Option<Base>) -> Option<Stage> {
        let found = self.list.iter_mut().find(|pending| pending.name == name);
        let pending = found.filter(|pending| pending.restarts < MOST_RESTARTS)?;
        pending.restarts += 1;
        pending.base = base;
        Some(std::mem::replace(&mut pending.stage, Stage::Room(0)))
    }

    /// Whether a write in progress has another task than this one.
    pub(super) fn has_other_task(&self, name: Writing, task: Task) -> bool {
        let found = self.list.iter().find(|pending| pending.name == name);
        found.is_some_and(|pending| pending.task != task)
    }

    pub(super) fn begin(
        &mut self,
        task: Task,
        stage: Stage,
        base: Option<Base>,
        now: Seconds,
    ) -> Writing {
        self.begun += 1;
        let name = Writing(self.begun);
        self.list.push(Pending {
            name,
            task,
            stage,
            base,
            restarts: 0,
            touched: now,
        });
        name
    }

    /// A write other than `own` that was not continued for so long that its caller may have
    /// vanished.
    pub(super) fn idle(&self, own: Writing, now: Seconds) -> Option<Writing> {
        // Seconds are whole: a difference of one more means that the time has passed.
        let is_idle = |pending: &Pending| now.0.saturating_sub(pending.touched.0) > IDLE_SECONDS;
        let mut others = self.list.iter().filter(|pending| pending.name != own);
        let found = others.find(|pending| is_idle(pending));
        found.map(|pending| pending.name)
    }

    /// The number of pages of all writes.
    #[cfg(test)]
    pub(super) fn pages(&self) -> usize {
        let pages = self.list.iter().map(|pending| match &pending.stage {
            Stage::Paged { pages, .. } => pages.iter().filter(|page| **page != u32::MAX).count(),
            Stage::Room(_) | Stage::Logged { .. } => 0,
        });
        pages.sum()
    }

    pub(super) fn end(&mut self, name: Writing) -> Option<Stage> {
        let at = self.list.iter().position(|pending| pending.name == name)?;
        Some(self.list.remove(at).stage)
    }
}
