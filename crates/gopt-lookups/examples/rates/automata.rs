//! Times the two forms of the automata in turns.

use std::hint::black_box;

use gopt_lookups::aho_corasick::{Automata, Order, Packet};
use gopt_lookups::random::Random;

use crate::measure::{cpu_ns, median};

/// Packets of a batch, as in the paper (§5).
const PACKETS: usize = 8192;

/// Samples of each form.
const SAMPLES: usize = 7;

const WIDTHS: [usize; 4] = [4, 8, 16, 32];

/// Prints bytes per second of both forms on packets that were never seen.
pub(crate) fn automata_rates(automata: &Automata, sets: &[Vec<Vec<u8>>], random: &mut Random) {
    let mut times = vec![Vec::new(); 1 + WIDTHS.len()];
    let mut order = Order::default();
    for _ in 0..SAMPLES {
        for (form, times) in times.iter_mut().enumerate() {
            let payloads = payloads(sets, random);
            let packets: Vec<Packet<'_>> = payloads
                .iter()
                .map(|(automaton, payload)| Packet {
                    automaton: *automaton,
                    payload,
                })
                .collect();
            let bytes: usize = payloads.iter().map(|(_, payload)| payload.len()).sum();
            let mut matches = 0_u64;
            let start = cpu_ns();
            match form.checked_sub(1) {
                None => automata.plain(&packets, |_| matches += 1),
                Some(at) => automata.batch(WIDTHS[at], &mut order, &packets, |_| matches += 1),
            }
            black_box(matches);
            times.push((cpu_ns() - start) / bytes as f64);
        }
    }
    let medians: Vec<f64> = times.into_iter().map(median).collect();
    let plain = medians[0];
    println!("aho-corasick: plain {plain:.2} ns a byte");
    for (width, batch) in WIDTHS.iter().zip(&medians[1..]) {
        println!(
            "  width {width:>2}: batch {batch:>5.2} ns a byte, {:.2} x plain",
            plain / batch
        );
    }
}

/// Pieces of patterns and of noise, each for the automaton that it is sent to.
fn payloads(sets: &[Vec<Vec<u8>>], random: &mut Random) -> Vec<(usize, Vec<u8>)> {
    let mut packet = |_| {
        let automaton = random.index(sets.len());
        let len = 64 + random.index(600);
        let mut payload = Vec::with_capacity(len + 16);
        while payload.len() < len {
            let pattern = &sets[automaton][random.index(sets[automaton].len())];
            payload.extend_from_slice(&pattern[..1 + random.index(pattern.len())]);
        }
        (automaton, payload)
    };
    (0..PACKETS).map(&mut packet).collect()
}
