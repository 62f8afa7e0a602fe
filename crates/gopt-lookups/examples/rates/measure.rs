//! Times the forms of one table in turns.

use std::hint::black_box;

use gopt::Batch;
use gopt_lookups::random::Random;
use gopt_lookups::work::{Handled, Handler, Packet, Tight, Work};
use gopt_lookups::{Lookup, forms};

/// Samples of each form.
const SAMPLES: usize = 15;

/// Widths of batches.
const WIDTHS: [usize; 6] = [4, 8, 16, 24, 32, 48];

/// Which code runs.
#[derive(Clone, Copy)]
enum Form {
    Plain,
    Gopt(usize),
    Hand(usize),
}

/// Measures look-ups alone, and in a handler. `items` is how many make one sample.
pub(crate) fn both_shapes<L: Lookup>(
    name: &str,
    table: &L,
    items: usize,
    mut key: impl FnMut(&mut Random) -> L::Key,
) {
    let mut random = Random::new(0xBEEF);
    let first = key(&mut random);
    let nothing = table.find(first);
    shape(name, "tight", table, &Tight, nothing, || {
        (0..items).map(|_| key(&mut random)).collect()
    });
    let nothing = Handled {
        value: nothing,
        digest: 0,
    };
    shape(name, "handler", table, &Handler, nothing, || {
        let words = std::array::from_fn(|_| random.bits());
        (0..items)
            .map(|_| Packet {
                words,
                key: key(&mut random),
            })
            .collect()
    });
}

fn shape<L, W>(
    name: &str,
    shape: &str,
    table: &L,
    work: &W,
    nothing: W::Out,
    mut fresh: impl FnMut() -> Vec<W::Item>,
) where
    L: Lookup,
    W: Work<L::Key, L::Value>,
    W::Out: Clone,
{
    let pairs = WIDTHS
        .into_iter()
        .flat_map(|width| [Form::Gopt(width), Form::Hand(width)]);
    let all: Vec<Form> = std::iter::once(Form::Plain).chain(pairs).collect();
    let mut times = vec![Vec::new(); all.len()];
    for _ in 0..SAMPLES {
        for (form, times) in all.iter().zip(&mut times) {
            let items = fresh();
            let mut out = vec![nothing.clone(); items.len()];
            let start = cpu_ns();
            run(*form, table, work, black_box(&items), &mut out);
            black_box(&out);
            times.push((cpu_ns() - start) / items.len() as f64);
        }
    }
    let medians: Vec<f64> = times.into_iter().map(median).collect();
    print(name, shape, &medians);
}

fn run<L: Lookup, W: Work<L::Key, L::Value>>(
    form: Form,
    table: &L,
    work: &W,
    items: &[W::Item],
    out: &mut [W::Out],
) {
    match form {
        Form::Plain => forms::plain(table, work, items, out),
        Form::Hand(width) => forms::hand(width, table, work, items, out),
        Form::Gopt(width) => {
            let batch = Batch::<64>::with_width(width).expect("all widths are below 64");
            forms::gopt(batch, table, work, items, out);
        }
    }
}

/// Time that this thread was on a processor: others do not count on a busy machine.
pub(crate) fn cpu_ns() -> f64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is a place for the answer.
    let failed = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    assert_eq!(failed, 0, "every Linux has this clock");
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

pub(crate) fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn print(name: &str, shape: &str, medians: &[f64]) {
    let plain = medians[0];
    println!(
        "{name}, {shape}: plain {plain:.1} ns, {:.2} M/s",
        1e3 / plain
    );
    let mut best = [f64::MAX; 2];
    for (width, pair) in WIDTHS.iter().zip(medians[1..].chunks(2)) {
        let [gopt, hand] = [pair[0], pair[1]];
        best = [best[0].min(gopt), best[1].min(hand)];
        println!(
            "  width {width:>2}: gopt {gopt:>7.1} ns, {:>5.2} x plain; \
             hand {hand:>7.1} ns, {:>5.2} x plain; gopt/hand {:.3}",
            plain / gopt,
            plain / hand,
            hand / gopt
        );
    }
    let [gopt, hand] = best;
    println!(
        "  best: gopt {:.2} M/s, {:.2} x plain; hand {:.2} x plain; gopt/hand {:.3}",
        1e3 / gopt,
        plain / gopt,
        plain / hand,
        hand / gopt
    );
}
