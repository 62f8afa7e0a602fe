//! The receiving half: shared memory, and now and then the remote transport.
//!
//! Invariant: the frames of a burst come from the transport that `source` names; the other
//! transport is not polled after it, so its frames wait for a later burst. Called by the event
//! loop, and by `connect`.

use dunlin_core::transport::{Frame, Rx};

use super::chosen::Chosen;
use super::remote::Remote;
use crate::shm::{ShmRx, ShortFrames};
use crate::turns::Turns;

/// The receiving half of an `auto` endpoint.
#[derive(Debug)]
pub struct AutoRx<R: Remote = Chosen> {
    /// `None` if the system refused to open shared memory.
    pub(super) shm: Option<ShmRx>,
    pub(super) remote: R::Rx,
    pub(super) turns: Turns,
    source: Source,
}

/// The transport of the current burst's frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Source {
    Shm,
    Remote,
}

impl<R: Remote> AutoRx<R> {
    pub(super) fn new(shm: Option<ShmRx>, remote: R::Rx) -> Self {
        Self {
            turns: if R::looks_are_cheap(&remote) {
                Turns::with_cheap_looks()
            } else {
                Turns::new()
            },
            shm,
            remote,
            source: Source::Remote,
        }
    }

    /// The half of the transport for peers of other hosts.
    pub fn remote(&self) -> &R::Rx {
        &self.remote
    }

    /// Looks at the remote transport. It is not inlined, so that the path through shared memory
    /// stays short.
    #[inline(never)]
    fn look_at_remote(&mut self) -> usize {
        let count = self.remote.burst();
        self.turns.on_look(count > 0);
        self.source = Source::Remote;
        count
    }
}

impl<R: Remote> Rx for AutoRx<R> {
    #[inline]
    fn burst(&mut self) -> usize {
        if self.turns.is_due() {
            let count = self.look_at_remote();
            if count > 0 {
                return count;
            }
        }
        let Some(shm) = &mut self.shm else {
            self.turns.on_idle();
            return 0;
        };
        let count = shm.burst();
        self.source = Source::Shm;
        if count > 0 {
            self.turns.on_busy();
        } else {
            self.turns.on_idle();
        }
        count
    }

    #[inline(always)]
    fn whole(&self, index: usize) -> Option<&[u8]> {
        match (&self.shm, self.source) {
            (Some(shm), Source::Shm) => shm.whole(index),
            _ => self.remote.whole(index),
        }
    }

    #[inline(always)]
    fn first(&self) -> Option<&[u8]> {
        match (&self.shm, self.source) {
            (Some(shm), Source::Shm) => shm.first_short(),
            _ => None,
        }
    }

    #[inline(always)]
    fn lined_up(&self, first: usize) -> impl ExactSizeIterator<Item = &[u8]> + Clone {
        match (&self.shm, self.source) {
            (Some(shm), Source::Shm) => shm.short_frames(first),
            _ => ShortFrames::default(),
        }
    }

    #[inline]
    fn frame(&self, index: usize) -> Frame<'_> {
        match (&self.shm, self.source) {
            (Some(shm), Source::Shm) => shm.frame(index),
            _ => self.remote.frame(index),
        }
    }
}
