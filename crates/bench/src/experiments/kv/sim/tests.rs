//! Two rates of the simulated machine are those of the paper's machine.

use super::*;

fn rate(cores: u16, mix: Mix) -> f64 {
    let shape = Shape {
        cores,
        clients: CLIENTS,
        window: WINDOW,
        mix,
        items: 1 << 12,
        seed: 1,
    };
    cluster::run(&shape).unwrap().per_s
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
