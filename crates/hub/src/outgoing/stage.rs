//! The stage of a call, in a word of which every value is valid. An `enum` would have values to
//! spare, in which the compiler keeps the tags of the options and futures around a call; each move
//! of the call would then take its bytes apart.

use dunlin_mailbox::Slot;

#[derive(Clone, Copy)]
pub(super) struct Stage(
    /// The step in the upper half, the slot in the lower half.
    u64,
);

/// A stage, as its readers see it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Now {
    /// Not polled yet. `has_place`: one of the channel's places is reserved for the call.
    New {
        slot: Slot,
        has_place: bool,
    },
    /// It ends at its first poll.
    Refused(Refusal),
    Posted(Slot),
    Over,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Refusal {
    Full,
    Endpoint,
    /// The hub ended while the call waited for layers.
    Closed,
    /// The deadline passed while the call waited for layers.
    Late,
}

const NEW: u64 = 0;
const NEW_WITH_PLACE: u64 = 1 << 32;
const POSTED: u64 = 2 << 32;
const FULL: u64 = 3 << 32;
const ENDPOINT: u64 = 4 << 32;
const CLOSED: u64 = 5 << 32;
const LATE: u64 = 6 << 32;
const OVER: u64 = 7 << 32;
const STEP: u64 = !0 << 32;

impl Stage {
    #[inline]
    pub(super) const fn now(self) -> Now {
        #[expect(clippy::cast_possible_truncation, reason = "the lower half")]
        let slot = Slot::from_bits(self.0 as u32);
        match self.0 & STEP {
            NEW | NEW_WITH_PLACE => Now::New {
                slot,
                has_place: self.0 & STEP == NEW_WITH_PLACE,
            },
            POSTED => Now::Posted(slot),
            FULL => Now::Refused(Refusal::Full),
            ENDPOINT => Now::Refused(Refusal::Endpoint),
            CLOSED => Now::Refused(Refusal::Closed),
            LATE => Now::Refused(Refusal::Late),
            _ => Now::Over,
        }
    }

    /// The slot of a call that is not sent yet.
    #[inline]
    pub(super) const fn new_slot(self) -> Option<Slot> {
        match self.now() {
            Now::New { slot, .. } => Some(slot),
            Now::Refused(_) | Now::Posted(_) | Now::Over => None,
        }
    }
}

impl From<Now> for Stage {
    #[inline]
    fn from(now: Now) -> Self {
        let of = |slot: Slot| u64::from(slot.to_bits());
        Self(match now {
            Now::New { slot, has_place } => u64::from(has_place) << 32 | of(slot),
            Now::Posted(slot) => POSTED | of(slot),
            Now::Refused(Refusal::Full) => FULL,
            Now::Refused(Refusal::Endpoint) => ENDPOINT,
            Now::Refused(Refusal::Closed) => CLOSED,
            Now::Refused(Refusal::Late) => LATE,
            Now::Over => OVER,
        })
    }
}

impl std::fmt::Debug for Stage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.now().fmt(f)
    }
}
