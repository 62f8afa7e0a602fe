//! The packets of a large message that have arrived, as its receiver records them: all packets
//! below a number, and some of the next 512. Called by `transfer/reassembly.rs`.

use dunlin_wire::{Bitmap, MAX_AHEAD, MAX_BITMAP_WORDS};

use crate::transfer::packet_set::{PacketSet, WORDS};

/// The packets of a message that have arrived, as its receiver records them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Arrivals {
    /// All packets below this one have arrived.
    cumulative: u32,
    behind: PacketSet,
}

/// The result of [`Arrivals::find`]: whether a packet is new.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Novelty {
    New,
    Duplicate,
    /// The packet is further ahead than a sender may go.
    TooFar,
}

impl Arrivals {
    #[inline]
    pub(crate) fn cumulative(&self) -> u32 {
        self.cumulative
    }

    /// Whether the packet would be new if it came now.
    #[inline]
    pub(crate) fn find(&self, packet: u32) -> Novelty {
        match packet.checked_sub(self.cumulative) {
            None => Novelty::Duplicate,
            Some(ahead) if ahead >= MAX_AHEAD => Novelty::TooFar,
            Some(_) if self.behind.has(packet) => Novelty::Duplicate,
            Some(_) => Novelty::New,
        }
    }

    /// Adds a packet that, according to [`Self::find`], is new.
    #[inline]
    pub(crate) fn insert(&mut self, packet: u32) {
        debug_assert_eq!(self.find(packet), Novelty::New);
        self.behind.insert(packet);
        while self.behind.has(self.cumulative) {
            self.behind.remove(self.cumulative);
            self.cumulative += 1;
        }
    }

    /// The next packet, if all that have arrived came in order.
    #[inline]
    pub(crate) fn next_in_order(&self) -> Option<u32> {
        self.behind.is_empty().then_some(self.cumulative)
    }

    /// Notes that packets have arrived in order: all below `end`, from [`Self::next_in_order`] on.
    #[inline]
    pub(crate) fn on_run(&mut self, end: u32) {
        debug_assert!(self.behind.is_empty() && end >= self.cumulative);
        self.cumulative = end;
    }

    /// The packets that have arrived after the cumulative number, as bitmaps for one or two CRs
    /// (rule W7). The first begins with the first word that is not empty; the second has the words
    /// that do not fit into it.
    pub(crate) fn bitmaps(&self) -> (Bitmap, Option<Bitmap>) {
        let words = self.behind.words_from(self.cumulative);
        let Some(first) = words.iter().position(|word| *word != 0) else {
            return (Bitmap::EMPTY, None);
        };
        let most = MAX_BITMAP_WORDS as usize;
        let of = |from: usize| {
            let until = WORDS.min(from + most);
            Bitmap::of_words(from, &words[from.min(until)..until])
        };
        let rest = of(first + most);
        (of(first), (rest != Bitmap::EMPTY).then_some(rest))
    }
}

#[cfg(test)]
mod tests;
