//! Two rates of the simulated machine match the paper's machine, and skew costs no more than in the
//! paper.

use super::*;

fn shape(cores: u16, mix: Mix, items: u32) -> Shape {
    Shape {
        cores,
        clients: CLIENTS,
        window: WINDOW,
        mix,
        items,
        seed: 1,
    }
}

fn rate(cores: u16, mix: Mix) -> f64 {
    cluster::run(&shape(cores, mix, 1 << 12)).unwrap().per_s
}

#[test]
fn one_core_and_six_have_the_rates_of_the_paper() {
    let sets = Mix {
        gets: 0,
        ..Mix::USUAL
    };
    let (one, six) = (rate(1, sets), rate(6, Mix::USUAL));
    println!("one core: {one:.0} operations a second, six: {six:.0}");
    assert!((one / 6.3e6 - 1.0).abs() < 0.05, "{one}");
    assert!((six / 26e6 - 1.0).abs() < 0.05, "{six}");
}

/// HERD §5.7, figure 14: the load of the six cores under Zipf 0.99. The ratio depends on the keys,
/// because a single key has 5.6 % of all requests: the first five sets of keys have 1.75, 1.37,
/// 1.35, 1.47 and 1.38. Experiments take another set for each round and judge the median, as this
/// test does for three sets. No set costs rate.
#[test]
fn skewed_keys_cost_no_rate_and_load_cores_as_in_the_paper() {
    let zipf = Mix {
        popularity: Popularity::Zipf,
        ..Mix::USUAL
    };
    let uniform = rate(CORES, Mix::USUAL);
    let mut ratios = [1, 2, 5].map(|seed| {
        let shape = shape(CORES, zipf, ALL_ITEMS);
        let skewed = cluster::run(&Shape { seed, ..shape }).unwrap();
        let of = |pick: fn(f64, f64) -> f64| skewed.by_core.iter().copied().reduce(pick).unwrap();
        let (ratio, share) = (of(f64::max) / of(f64::min), skewed.per_s / uniform);
        assert_eq!(skewed.by_core.len(), usize::from(CORES));
        assert!(share >= 0.95, "seed {seed}: {share}");
        ratio
    });
    ratios.sort_by(f64::total_cmp);
    println!("most loaded over least loaded core: {ratios:.2?}");
    assert!(ratios[0] > 1.0 && ratios[1] <= 1.5, "{ratios:?}");
}
