//! Two rates of the simulated machine are those of the paper's machine, and skew costs no more
//! than there.

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

/// HERD §5.7, figure 14: the load of the six cores under Zipf 0.99.
#[test]
fn skewed_keys_load_no_core_much_more_and_cost_no_rate() {
    let zipf = Mix {
        popularity: Popularity::Zipf,
        ..Mix::USUAL
    };
    let [uniform, skewed] =
        [Mix::USUAL, zipf].map(|mix| cluster::run(&shape(CORES, mix, ALL_ITEMS)).unwrap());
    let of = |pick: fn(f64, f64) -> f64| skewed.by_core.iter().copied().reduce(pick).unwrap();
    let (ratio, share) = (of(f64::max) / of(f64::min), skewed.per_s / uniform.per_s);
    println!("most / least: {ratio:.3}, of the uniform rate: {share:.4}");
    assert_eq!(skewed.by_core.len(), usize::from(CORES));
    assert!(ratio > 1.0 && ratio <= 1.5, "{ratio}");
    assert!(share >= 0.95, "{share}");
}
