//! Matching of many patterns in packets (G-Opt §5): each packet's payload runs through one of
//! several Aho-Corasick automata. There are two forms. One takes one packet after the other. The
//! second sorts a batch by automaton and length, and interchanges the loops over packets and bytes.
//!
//! Invariants: a transition is the number of a state, counted over all automata, with a bit that
//! says whether patterns end there; the state exists. Both forms report the same matches, those of
//! one packet in the order of their ends.

mod build;

use std::io;

use gopt::MAX_WIDTH;

use crate::huge::Huge;

/// Transitions of a state.
const BYTES: usize = 256;

/// Set in a transition to a state in which patterns end.
const ENDS: u32 = 1 << 31;

/// Several automata whose states are numbered together.
#[derive(Debug)]
pub struct Automata {
    pub(crate) next: Huge<u32>,
    /// The start state of each automaton.
    pub(crate) starts: Vec<u32>,
    /// For each state, the index of its first pattern in `patterns`. One more entry is the end of
    /// the last state's patterns.
    ends: Vec<u32>,
    patterns: Vec<u32>,
}

/// The text to search, and its automaton.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    /// Number of the automaton; a number without an automaton matches nothing.
    pub automaton: usize,
    /// The bytes.
    pub payload: &'a [u8],
}

/// An occurrence of a pattern.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Match {
    /// Number of the packet in its batch.
    pub packet: usize,
    /// Number of bytes up to the end of the match.
    pub end: usize,
    /// Number of the pattern in its automaton.
    pub pattern: u32,
}

/// Memory that batches reuse.
#[derive(Default, Debug)]
pub struct Order {
    packets: Vec<(u32, u32, u32)>,
}

/// A packet on its way through an automaton.
#[derive(Clone, Copy)]
struct Lane<'a> {
    state: u32,
    packet: usize,
    payload: &'a [u8],
}

impl Automata {
    /// Makes one automaton for each set of patterns.
    ///
    /// # Errors
    /// `InvalidInput` if a pattern is empty or if states need more than 31 bits, otherwise the
    /// error of `mmap`.
    pub fn new<P: AsRef<[u8]>>(sets: &[Vec<P>]) -> io::Result<Self> {
        build::build(sets)
    }

    /// The number of states of all automata together. Each state takes 1 KiB.
    #[must_use]
    pub fn states(&self) -> usize {
        self.ends.len() - 1
    }

    /// Runs packet after packet and hands every match to `found`.
    #[inline(never)]
    pub fn plain(&self, packets: &[Packet<'_>], mut found: impl FnMut(Match)) {
        for (packet, given) in packets.iter().enumerate() {
            let Some(&start) = self.starts.get(given.automaton) else {
                continue;
            };
            let mut state = start;
            for (at, &byte) in given.payload.iter().enumerate() {
                let entry = self.step(state, byte);
                state = entry & !ENDS;
                if entry & ENDS != 0 {
                    self.report(state, packet, at + 1, &mut found);
                }
            }
        }
    }

    /// Runs `width` packets at a time, each one byte per round. The batch is sorted first:
    /// neighbours then use the same automaton, so it is in the cache, and they end at about the
    /// same time.
    #[inline(never)]
    pub fn batch(
        &self,
        width: usize,
        order: &mut Order,
        packets: &[Packet<'_>],
        mut found: impl FnMut(Match),
    ) {
        order.sort(packets);
        let width = width.clamp(1, MAX_WIDTH);
        let idle = Lane {
            state: 0,
            packet: 0,
            payload: &[],
        };
        let mut lanes = [idle; MAX_WIDTH];
        let mut live = 0;
        let mut rest = order.packets.iter();
        loop {
            while live < width
                && let Some(&(_, _, packet)) = rest.next()
            {
                let packet = packet as usize;
                let Packet { automaton, payload } = packets[packet];
                if let Some(&state) = self.starts.get(automaton) {
                    lanes[live] = Lane {
                        state,
                        packet,
                        payload,
                    };
                    live += 1;
                }
            }
            if live == 0 {
                return;
            }
            self.run(&mut lanes[..live], packets, &mut found);
            live = keep_unfinished(&mut lanes[..live]);
        }
    }

    /// Runs all lanes until the first of them has ended.
    #[inline(always)]
    fn run(&self, lanes: &mut [Lane<'_>], packets: &[Packet<'_>], found: &mut impl FnMut(Match)) {
        let lens = lanes.iter().map(|lane| lane.payload.len());
        let rounds = lens.min().unwrap_or(0);
        for at in 0..rounds {
            for lane in &mut *lanes {
                let entry = self.step(lane.state, lane.payload[at]);
                lane.state = entry & !ENDS;
                if entry & ENDS != 0 {
                    let done = packets[lane.packet].payload.len() - lane.payload.len();
                    self.report(lane.state, lane.packet, done + at + 1, found);
                }
            }
        }
        for lane in lanes {
            lane.payload = &lane.payload[rounds..];
        }
    }

    #[inline(always)]
    fn step(&self, state: u32, byte: u8) -> u32 {
        self.next[state as usize * BYTES + usize::from(byte)]
    }

    /// Matches are rare, so this code is a function of its own, outside of the loops.
    #[cold]
    #[inline(never)]
    pub(crate) fn report(
        &self,
        state: u32,
        packet: usize,
        end: usize,
        found: &mut impl FnMut(Match),
    ) {
        let [from, to] = [0, 1].map(|next| self.ends[state as usize + next] as usize);
        for &pattern in &self.patterns[from..to] {
            found(Match {
                packet,
                end,
                pattern,
            });
        }
    }
}

impl Order {
    /// Sorts the numbers of the packets by automaton, then length.
    fn sort(&mut self, packets: &[Packet<'_>]) {
        let small = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        self.packets.clear();
        let keys = packets.iter().enumerate().map(|(number, packet)| {
            let len = small(packet.payload.len());
            (small(packet.automaton), len, small(number))
        });
        self.packets.extend(keys);
        self.packets.sort_unstable();
    }
}

/// Moves the lanes that have bytes left to the front; returns their number.
fn keep_unfinished(lanes: &mut [Lane<'_>]) -> usize {
    let mut kept = 0;
    for at in 0..lanes.len() {
        if !lanes[at].payload.is_empty() {
            lanes[kept] = lanes[at];
            kept += 1;
        }
    }
    kept
}
