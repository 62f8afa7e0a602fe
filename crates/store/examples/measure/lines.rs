//! The machine's own rate: random cache lines, prefetched in groups and then read.

use dunlin_store::Region;

use super::workload::Random;

/// The best rate over several sizes of a group, in lines a second.
pub(crate) fn best_rate(memory: &Region, random: &mut Random, lines: usize) -> f64 {
    let rates = [8, 16, 32, 64].map(|group| rate(memory, random, group, lines));
    rates.into_iter().fold(0.0, f64::max)
}

fn rate(memory: &Region, random: &mut Random, group: usize, lines: usize) -> f64 {
    let places = memory.len() as u64 / 64;
    let mut sum = 0_u64;
    let mut at = [0_usize; 64];
    let seconds = super::seconds(|| {
        for _ in 0..lines / group {
            for at in &mut at[..group] {
                *at = usize::try_from(random.below(places)).expect("it is in memory") * 64;
                gopt::prefetch_now(&raw const memory[*at], gopt::T0);
            }
            for at in &at[..group] {
                sum = sum.wrapping_add(u64::from(memory[*at]));
            }
        }
    });
    std::hint::black_box(sum);
    (lines / group * group) as f64 / seconds
}
