//! Times the forms of one table in turns, those in Rust and those in C.

use std::hint::black_box;

use gopt::Batch;
use gopt_lookups::c::{CForm, InC};
use gopt_lookups::forms;
use gopt_lookups::random::Random;
use gopt_lookups::work::{Handled, Handler, Packet, Tight, Work};

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
    InC(CForm, usize),
}

/// A shape in which all forms of a table run on the same kind of items.
trait Shape<L: InC> {
    type Item;
    type Out: Clone;

    /// What stands in results before they are written.
    fn nothing(table: &L, key: L::Key) -> Self::Out;
    fn item(random: &mut Random, key: L::Key) -> Self::Item;
    fn run(form: Form, table: &L, items: &[Self::Item], out: &mut [Self::Out]);
}

impl<L: InC> Shape<L> for Tight {
    type Item = L::Key;
    type Out = L::Value;

    fn nothing(table: &L, key: L::Key) -> L::Value {
        table.find(key)
    }

    fn item(_: &mut Random, key: L::Key) -> L::Key {
        key
    }

    fn run(form: Form, table: &L, keys: &[L::Key], out: &mut [L::Value]) {
        match form {
            Form::InC(form, width) => table.tight_in_c(form, width, keys, out),
            form => run(form, table, &Self, keys, out),
        }
    }
}

impl<L: InC> Shape<L> for Handler {
    type Item = Packet<L::Key>;
    type Out = Handled<L::Value>;

    fn nothing(table: &L, key: L::Key) -> Handled<L::Value> {
        Handled {
            value: table.find(key),
            digest: 0,
        }
    }

    fn item(random: &mut Random, key: L::Key) -> Packet<L::Key> {
        let words = std::array::from_fn(|_| random.bits());
        Packet { words, key }
    }

    fn run(form: Form, table: &L, packets: &[Self::Item], out: &mut [Self::Out]) {
        match form {
            Form::InC(form, width) => table.handler_in_c(form, width, packets, out),
            form => run(form, table, &Self, packets, out),
        }
    }
}

/// Measures look-ups alone, and in a handler. `items` is how many make one sample.
pub(crate) fn both_shapes<L: InC>(
    name: &str,
    table: &L,
    items: usize,
    mut key: impl FnMut(&mut Random) -> L::Key,
) {
    shape::<L, Tight>(name, "tight", table, items, &mut key);
    shape::<L, Handler>(name, "handler", table, items, &mut key);
}

fn shape<L: InC, S: Shape<L>>(
    name: &str,
    shape: &str,
    table: &L,
    count: usize,
    mut key: impl FnMut(&mut Random) -> L::Key,
) {
    let mut random = Random::new(0xBEEF);
    let nothing = S::nothing(table, key(&mut random));
    let of_width = |width| {
        [
            Form::Gopt(width),
            Form::Hand(width),
            Form::InC(CForm::Gopt, width),
            Form::InC(CForm::Hand, width),
        ]
    };
    let plain = [Form::Plain, Form::InC(CForm::Plain, 1)];
    let all: Vec<Form> = plain
        .into_iter()
        .chain(WIDTHS.into_iter().flat_map(of_width))
        .collect();
    let mut times = vec![Vec::new(); all.len()];
    for _ in 0..SAMPLES {
        for (form, times) in all.iter().zip(&mut times) {
            let fresh = |_| {
                let key = key(&mut random);
                S::item(&mut random, key)
            };
            let items: Vec<S::Item> = (0..count).map(fresh).collect();
            let mut out = vec![nothing.clone(); count];
            let start = cpu_ns();
            S::run(*form, table, black_box(&items), &mut out);
            black_box(&out);
            times.push((cpu_ns() - start) / count as f64);
        }
    }
    let medians: Vec<f64> = times.into_iter().map(median).collect();
    print(name, shape, &medians);
}

/// Runs a form in Rust.
fn run<L: InC, W: Work<L::Key, L::Value>>(
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
        Form::InC(..) => unreachable!("the shape calls C"),
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
    let (plain, in_c) = (medians[0], medians[1]);
    println!(
        "{name}, {shape}: plain {plain:.1} ns, {:.2} M/s; in C {in_c:.1} ns, {:.3} of Rust's",
        1e3 / plain,
        in_c / plain
    );
    let mut best = [f64::MAX; 4];
    for (width, times) in WIDTHS.iter().zip(medians[2..].chunks(4)) {
        for (best, &time) in best.iter_mut().zip(times) {
            *best = best.min(time);
        }
        print!("  width {width:>2}:");
        print_pairs(plain, times);
    }
    print!("  best:    ");
    print_pairs(plain, &best);
}

/// Times of gopt and hand in Rust, then in C.
fn print_pairs(plain: f64, times: &[f64]) {
    for (language, pair) in ["Rust", "C"].iter().zip(times.chunks(2)) {
        let [gopt, hand] = [pair[0], pair[1]];
        print!(
            " {language:>4}: gopt {gopt:>7.1} ns {:>5.2} x, hand {hand:>7.1} ns {:>5.2} x, \
             gopt/hand {:.3};",
            plain / gopt,
            plain / hand,
            hand / gopt
        );
    }
    println!();
}
