//! Times the two forms of the automata in turns, in Rust and in C.

use std::hint::black_box;

use gopt_lookups::aho_corasick::{Automata, Order, Packet};
use gopt_lookups::c::OrderInC;
use gopt_lookups::random::Random;

use crate::measure::{cpu_ns, median};

/// Packets of a batch, as in the paper (§5).
const PACKETS: usize = 8192;

/// Samples of each form.
const SAMPLES: usize = 7;

const WIDTHS: [usize; 4] = [4, 8, 16, 32];

/// Which code runs.
enum Form {
    Plain,
    PlainInC,
    Batch(usize),
    BatchInC(usize),
}

/// Prints bytes per second of both forms on packets that were never seen.
pub(crate) fn automata_rates(automata: &Automata, sets: &[Vec<Vec<u8>>], random: &mut Random) {
    let in_turns = WIDTHS
        .iter()
        .flat_map(|&width| [Form::Batch(width), Form::BatchInC(width)]);
    let forms: Vec<Form> = [Form::Plain, Form::PlainInC]
        .into_iter()
        .chain(in_turns)
        .collect();
    let mut times = vec![Vec::new(); forms.len()];
    let (mut order, mut in_c) = (Order::default(), OrderInC::default());
    for _ in 0..SAMPLES {
        for (form, times) in forms.iter().zip(&mut times) {
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
            let count = |_| matches += 1;
            match *form {
                Form::Plain => automata.plain(&packets, count),
                Form::PlainInC => automata.plain_in_c(&mut in_c, &packets, count),
                Form::Batch(width) => automata.batch(width, &mut order, &packets, count),
                Form::BatchInC(width) => automata.batch_in_c(width, &mut in_c, &packets, count),
            }
            black_box(matches);
            times.push((cpu_ns() - start) / bytes as f64);
        }
    }
    let medians: Vec<f64> = times.into_iter().map(median).collect();
    let (plain, plain_in_c) = (medians[0], medians[1]);
    println!("aho-corasick: plain {plain:.2} ns a byte, in C {plain_in_c:.2}");
    for (width, batch) in WIDTHS.iter().zip(medians[2..].chunks(2)) {
        println!(
            "  width {width:>2}: batch {:>5.2} ns a byte, {:.2} x plain; in C {:>5.2}, {:.2} x",
            batch[0],
            plain / batch[0],
            batch[1],
            plain_in_c / batch[1]
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
