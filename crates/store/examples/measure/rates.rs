//! Rates of gets and writes over a given number of GiB of keys and values of 16 + 32 bytes.

use dunlin_store::{BATCH, Key, Mode, Region, Table, Write};

use super::workload::{Random, Zipf, key};
use super::{NOW, Outcome, lines, median, seconds};

/// Operations of one sample. The figures of a build with debug assertions mean nothing.
const SAMPLE: usize = if cfg!(debug_assertions) {
    1 << 18
} else {
    1 << 20
};

const VALUE: usize = 32;

/// Bytes of a region for each byte of keys and values.
const OVERHEAD: f64 = 2.1;

#[derive(Clone, Copy, PartialEq)]
enum Popularity {
    Uniform,
    Zipf,
}

/// How the operations of a sample are run.
#[derive(Clone, Copy)]
struct Form {
    popularity: Popularity,
    /// Percentage of gets; the other operations are sets.
    gets: u64,
    /// The number of keys looked up together; 1 means no batch.
    batch: usize,
}

/// Prints each rate: the median of `rounds` samples.
pub(crate) fn run(gib: f64, mode: Mode, rounds: usize) -> Outcome {
    let payload = gib * f64::from(1 << 30);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "sizes far below 2^53"
    )]
    let (items, memory) = ((payload / 48.0) as u64, (payload * OVERHEAD) as usize);
    let mut table = super::table(memory.next_multiple_of(2 << 20), mode)?;
    let fill = seconds(|| fill(&mut table, items));
    println!(
        "{mode:?}, {items} items, written in {fill:.1} s: {:?}",
        table.stats()
    );
    let mut bare = Region::new(memory.next_multiple_of(2 << 20))?;
    // Pages must differ; a hypervisor might store equal pages only once.
    for (number, page) in bare.chunks_mut(4096).enumerate() {
        page[..8].copy_from_slice(&number.to_le_bytes());
    }
    let zipf = Zipf::new(items, 0.99);
    let mut random = Random(7);
    let forms = forms();
    let mut lines_rates = Vec::new();
    let mut rates = vec![Vec::new(); forms.len()];
    for _ in 0..rounds {
        lines_rates.push(lines::best_rate(&bare, &mut random, SAMPLE));
        for (form, rates) in forms.iter().zip(&mut rates) {
            let keys = draw(*form, items, &zipf, &mut random);
            rates.push(sample(&mut table, *form, &keys));
        }
    }
    report(&forms, &mut lines_rates, &mut rates);
    Ok(())
}

fn forms() -> Vec<Form> {
    let mut forms = Vec::new();
    for popularity in [Popularity::Uniform, Popularity::Zipf] {
        for gets in [100, 95, 50] {
            for batch in [1, 2, 4, 8, 16, 32] {
                forms.push(Form {
                    popularity,
                    gets,
                    batch,
                });
            }
        }
    }
    forms
}

fn fill(table: &mut Table, items: u64) {
    for number in 0..items {
        let bytes = key(number);
        let key = table.key(&bytes).expect("it has 16 bytes");
        let value = [number.to_le_bytes(); VALUE / 8].concat();
        let written = table.write(&key, &Write::set(&value), NOW);
        written.expect("the region is large enough");
    }
}

/// Draws the keys of a sample, each with true for a get, or false for a set.
fn draw(form: Form, items: u64, zipf: &Zipf, random: &mut Random) -> Vec<([u8; 16], bool)> {
    let mut draw = || {
        let number = match form.popularity {
            Popularity::Uniform => random.below(items),
            // Spreads popular keys over the whole table.
            Popularity::Zipf => zipf.draw(random).wrapping_mul(0x9e37_79b9_7f4a_7c15) % items,
        };
        (key(number), random.below(100) < form.gets)
    };
    (0..SAMPLE).map(|_| draw()).collect()
}

/// Operations a second. Each value that is read is copied, as into a response.
fn sample(table: &mut Table, form: Form, keys: &[([u8; 16], bool)]) -> f64 {
    let mut response = [0_u8; VALUE];
    let mut hits = 0_usize;
    let seconds = seconds(|| {
        for batch in keys.chunks(form.batch) {
            let mut hashed = [table.key(&batch[0].0).expect("it has 16 bytes"); BATCH];
            for (place, (bytes, _)) in hashed.iter_mut().zip(batch) {
                *place = table.key(bytes).expect("it has 16 bytes");
            }
            let hashed = &mut hashed[..batch.len()];
            if form.batch > 1 {
                table.ahead(hashed);
            }
            for (key, (_, is_get)) in hashed.iter().zip(batch) {
                hits += usize::from(operate(table, key, *is_get, &mut response));
            }
        }
    });
    std::hint::black_box(response);
    assert!(
        hits > keys.len() / 4,
        "{hits} of {} keys were there",
        keys.len()
    );
    keys.len() as f64 / seconds
}

#[inline]
fn operate(table: &mut Table, key: &Key<'_>, is_get: bool, response: &mut [u8; VALUE]) -> bool {
    if !is_get {
        return table.write(key, &Write::set(response), NOW).is_ok();
    }
    let item = table.get(key, NOW);
    item.is_some_and(|item| item.value().copy_from(0, response) == VALUE)
}

fn report(forms: &[Form], lines: &mut [f64], rates: &mut [Vec<f64>]) {
    let lines = median(lines);
    println!(
        "random lines: {:.1} M/s, so two of them {:.1} M/s",
        lines / 1e6,
        lines / 2e6
    );
    let mut single = 0.0;
    for (form, rates) in forms.iter().zip(rates) {
        let rate = median(rates);
        if form.batch == 1 {
            single = rate;
        }
        let popularity = match form.popularity {
            Popularity::Uniform => "uniform",
            Popularity::Zipf => "zipf",
        };
        println!(
            "{popularity:8} {:3} % gets, batch {:2}: {:6.2} M/s ({:.2} to {:.2}), \
             {:.2} of two lines, {:.2} of batch 1",
            form.gets,
            form.batch,
            rate / 1e6,
            rates[0] / 1e6,
            rates[rates.len() - 1] / 1e6,
            rate / (lines / 2.0),
            rate / single,
        );
    }
}
