//! Distributions against their closed forms.

use super::*;

#[test]
fn zeta_is_close_to_the_sum_of_all_weights() {
    for items in [1, 2, 999, 1000, 1001, 300_000] {
        let exact: f64 = (1..=items).map(weight).sum();
        let error = (zeta(items) - exact).abs();
        assert!(error < 1e-6, "{items}: {error}");
    }
}

#[test]
fn draws_have_the_shares_of_their_mix() {
    const DRAWS: u32 = 200_000;
    for mix in Mix::all() {
        let mut draws = Draws::new(mix, 10_000, 1);
        let mut most = std::collections::BTreeMap::new();
        let mut gets = 0;
        for _ in 0..DRAWS {
            let Operation { number, is_get } = draws.draw();
            assert!(number < 10_000);
            gets += u32::from(is_get);
            *most.entry(number).or_insert(0) += 1;
        }
        let share = f64::from(gets) / f64::from(DRAWS);
        let wanted = f64::from(mix.gets) / 100.0;
        assert!((share - wanted).abs() < 0.01, "{mix:?}: {share}");
        // The most popular item of a Zipf distribution has the share 1 / zeta: here a tenth.
        let share = f64::from(*most.values().max().unwrap()) / f64::from(DRAWS);
        let wanted = match mix.popularity {
            Popularity::Uniform => 1e-4,
            Popularity::Zipf => 1.0 / zeta(10_000),
        };
        assert!(
            share / wanted < 3.0 && wanted / share < 1.1,
            "{mix:?}: {share}"
        );
        // The share of the hundred most popular ones shows the shape of the tail.
        let mut counts: Vec<i32> = most.into_values().collect();
        counts.sort_unstable_by(|a, b| b.cmp(a));
        let share = f64::from(counts.iter().take(100).sum::<i32>()) / f64::from(DRAWS);
        let wanted = match mix.popularity {
            Popularity::Uniform => 0.02,
            Popularity::Zipf => zeta(100) / zeta(10_000),
        };
        assert!((share - wanted).abs() < 0.02, "{mix:?}: {share}, {wanted}");
    }
}
