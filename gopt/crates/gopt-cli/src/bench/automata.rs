//! Packets for the automata, and both forms of searching them.

use std::hint::black_box;

use anyhow::ensure;
use gopt_lookups::aho_corasick::{Automata, Match, Order, Packet};
use gopt_lookups::c::OrderInC;
use gopt_lookups::random::Random;

use super::form::{Cell, Form};

/// Packets of a batch, as in the paper (§5.3).
const PACKETS: usize = 8192;

/// Bytes of a packet: the smallest number, and the limit of the random number that is added.
const BYTES: [usize; 2] = [64, 600];

/// Packets that consist of beginnings of patterns. Each comes with the automaton that searches it.
pub(super) struct Traffic {
    payloads: Vec<(usize, Vec<u8>)>,
}

impl Traffic {
    /// Packets of random lengths for random automata.
    pub(super) fn new(sets: &[Vec<Vec<u8>>], random: &mut Random) -> Self {
        let packet = |_| {
            let automaton = random.index(sets.len());
            let set = &sets[automaton];
            let len = BYTES[0] + random.index(BYTES[1]);
            let mut payload = Vec::with_capacity(len + 16);
            while payload.len() < len {
                let pattern = &set[random.index(set.len())];
                payload.extend_from_slice(&pattern[..1 + random.index(pattern.len())]);
            }
            (automaton, payload)
        };
        Self {
            payloads: (0..PACKETS).map(packet).collect(),
        }
    }

    /// Bytes of all packets. Each byte is one look-up.
    pub(super) fn bytes(&self) -> usize {
        self.payloads.iter().map(|(_, payload)| payload.len()).sum()
    }

    /// The packets in the form that automata take.
    pub(super) fn packets(&self) -> Vec<Packet<'_>> {
        let packets = self.payloads.iter().map(|(automaton, payload)| Packet {
            automaton: *automaton,
            payload,
        });
        packets.collect()
    }
}

/// Searches all packets in one form; returns the number of matches.
#[inline(never)]
pub(super) fn run_form(cell: Cell, automata: &Automata, packets: &[Packet<'_>]) -> u64 {
    let mut matches = 0;
    let count = |found: Match| {
        black_box(found);
        matches += 1;
    };
    let width = cell.width();
    match cell.form {
        Form::Plain => automata.plain(packets, count),
        Form::Batch => automata.batch(width, &mut Order::default(), packets, count),
        Form::CPlain => automata.plain_in_c(&mut OrderInC::default(), packets, count),
        Form::CBatch => automata.batch_in_c(width, &mut OrderInC::default(), packets, count),
        Form::Gopt | Form::Hand | Form::CGopt | Form::CHand | Form::Lines => {
            unreachable!("automata have no such form")
        }
    }
    matches
}

/// Checks that all forms find the same number of matches as `plain`.
///
/// # Errors
/// A form finds another number.
pub(super) fn check(automata: &Automata, cells: &[Cell], traffic: &Traffic) -> anyhow::Result<()> {
    let packets = traffic.packets();
    let mut plain = None;
    for &cell in cells {
        let matches = run_form(cell, automata, &packets);
        let expected = *plain.get_or_insert(matches);
        ensure!(
            matches == expected,
            "{cell:?} finds {matches}, not {expected}"
        );
    }
    Ok(())
}
