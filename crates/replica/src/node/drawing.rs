//! Images of the items: for a follower that lacks dropped entries, and for the disk, whose log can
//! then begin later. Each run makes a slice of the image under way, so a message or operation waits
//! for one slice at most. An image shows the items as they were when it was begun.
//!
//! Large images and discarded items are freed in slices, too: the kernel takes tens of milliseconds
//! to reclaim a GiB. Called by `tend`.

use raft::Storage;
use raft::eraftpb::Snapshot;

use super::output::Output;
use super::{Node, items};
use crate::machine::{Budget, Ruin};
use crate::wire::Roster;
use crate::work::{Items, Work};

/// A run frees at most this number of bytes.
const FREED: usize = 1 << 20;

/// A run drops at most this number of entries.
pub(crate) const DROPPED: usize = 1024;

/// The purpose of an image.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Purpose {
    /// A snapshot for a follower.
    Follower,
    /// Items for the disk, whose log then begins after this place.
    Disk((u64, u64)),
}

/// The image under way.
#[derive(Debug)]
struct Draft {
    /// Index and term of the last entry that it contains.
    place: (u64, u64),
    roster: Roster,
    purpose: Purpose,
}

/// Images under way or requested, and memory to be freed.
#[derive(Debug, Default)]
pub(super) struct Drawing {
    draft: Option<Draft>,
    /// Raft has asked for a snapshot.
    is_asked: bool,
    waste: Vec<Vec<u8>>,
    ruins: Vec<Ruin>,
}

impl Drawing {
    /// Whether no image is under way.
    pub(super) const fn is_idle(&self) -> bool {
        self.draft.is_none()
    }

    /// The index of the snapshot under way.
    pub(super) fn index(&self) -> Option<u64> {
        let draft = self.draft.as_ref()?;
        (draft.purpose == Purpose::Follower).then_some(draft.place.0)
    }

    /// Whether there is nothing to free.
    fn is_clear(&self) -> bool {
        self.waste.is_empty() && self.ruins.is_empty()
    }

    /// Frees a slice of the memory that is no longer needed.
    fn free(&mut self) {
        if let Some(ruin) = self.ruins.last_mut() {
            if !ruin.shed(Budget::slice(FREED)) {
                self.ruins.pop();
            }
            return;
        }
        if let Some(bytes) = self.waste.last_mut() {
            bytes.truncate(bytes.len().saturating_sub(FREED));
            bytes.shrink_to_fit();
            if bytes.is_empty() {
                self.waste.pop();
            }
        }
    }

    /// Takes a discarded state, to free it.
    pub(super) fn clear_away(&mut self, ruin: Ruin) {
        self.ruins.push(ruin);
    }

    pub(super) fn discard(&mut self, bytes: Vec<u8>) {
        if bytes.len() > FREED {
            self.waste.push(bytes);
        }
    }
}

impl<A> Node<A> {
    /// Whether the next run has work that did not fit into the last one.
    #[must_use]
    pub fn has_more(&self) -> bool {
        self.has_left() || self.has_other_work()
    }

    /// Whether there is more work than applying entries.
    pub(crate) fn has_other_work(&self) -> bool {
        let drawing = &self.drawing;
        let is_waiting = drawing.is_asked || self.is_to_shorten || self.dropping.is_some();
        is_waiting
            || !drawing.is_idle()
            || !drawing.is_clear()
            || !self.has_read()
            || self.log().is_stale()
    }

    /// The bytes of the image under way so far.
    #[cfg(test)]
    pub(crate) fn drawn(&self) -> Option<usize> {
        self.machine.drawn()
    }

    /// Takes a snapshot that is no longer needed.
    pub(crate) fn discard(&mut self, snapshot: Snapshot) {
        // Other owners may still hold it.
        if snapshot.data.is_unique() {
            self.drawing.discard(snapshot.data.into());
        }
    }

    /// Begins the snapshot that Raft has asked for.
    pub(super) fn answer_question(&mut self) {
        self.drawing.is_asked |= self.log().take_question();
        if self.drawing.is_asked && self.drawing.is_idle() {
            self.drawing.is_asked = false;
            self.draw(Purpose::Follower);
        }
    }

    /// Begins the image that lets the disk's log begin after a place.
    pub(super) fn draw_for_disk(&mut self, base: (u64, u64)) {
        self.draw(Purpose::Disk(base));
    }

    fn draw(&mut self, purpose: Purpose) {
        let applied = self.machine.applied();
        let Ok(term) = self.raft.store().term(applied) else {
            return;
        };
        let roster = self.roster().clone();
        self.machine.begin_image(items::head(&roster));
        self.drawing.draft = Some(Draft {
            place: (applied, term),
            roster,
            purpose,
        });
    }

    /// Abandons the image under way, because a snapshot replaces the items.
    pub(super) fn stop_drawing(&mut self) {
        self.drawing.draft = None;
        if let Some(bytes) = self.machine.give_up_image() {
            self.drawing.discard(bytes);
        }
    }

    /// Makes the next slice of the image under way, and frees one slice of memory.
    pub(super) fn go_on_drawing(&mut self, out: &mut Output<A>) {
        while let Some(snapshot) = self.raft.mut_store().take_dropped() {
            self.discard(snapshot);
        }
        self.drawing.free();
        self.raft.mut_store().shed(DROPPED);
        if self.drawing.is_idle() {
            return;
        }
        let budget = Budget::slice(self.options.slice_bytes);
        if let Some(image) = self.machine.go_on(budget)
            && let Some(draft) = self.drawing.draft.take()
        {
            self.use_image(draft, image, out);
        }
    }

    fn use_image(&mut self, draft: Draft, image: Vec<u8>, out: &mut Output<A>) {
        match draft.purpose {
            Purpose::Follower => {
                // The snapshot is useless if the log begins after it or it lacks a member.
                let is_late = draft.place.0 < self.log().base() || draft.roster != *self.roster();
                match is_late {
                    true => self.drawing.discard(image),
                    false => {
                        // Raft may have asked again meanwhile; this snapshot answers that, too.
                        self.drawing.is_asked = false;
                        self.raft.mut_store().offer(draft.place, image);
                    }
                }
            }
            Purpose::Disk(base) => {
                if let Some(journal) = &mut self.journal {
                    journal.on_checkpoint();
                }
                out.work.push(Work::Checkpoint(Items {
                    applied: draft.place.0,
                    base,
                    image,
                }));
            }
        }
    }
}
