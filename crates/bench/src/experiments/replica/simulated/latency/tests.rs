//! The network, and the time of a put.

use super::*;

#[test]
fn the_network_is_the_papers_and_a_put_takes_two_round_trips_and_three_steps() {
    let times = run(1).unwrap();
    assert!((2250.0..2350.0).contains(&times.echo), "{} ns", times.echo);
    let least = 2.0 * times.echo + 3.0 * super::super::STEP.0 as f64;
    let put = times.put[0];
    assert!(put > least && put < least + 800.0, "{put} and {least} ns");
    let leader = times.leader[0];
    assert!(
        leader > times.echo && leader < put - times.echo + 500.0,
        "{leader} ns"
    );
}
