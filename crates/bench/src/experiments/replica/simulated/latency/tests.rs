//! The network, and the time of a put.

use super::*;

#[test]
fn the_network_is_as_in_the_paper_and_a_put_takes_two_round_trips_and_three_steps() {
    let times = run(1).unwrap();
    assert!((2250.0..2350.0).contains(&times.echo), "{} ns", times.echo);
    let least = 2.0 * times.echo + 3.0 * super::super::STEP.0 as f64;
    let [put, put_p99] = times.put;
    let [leader, leader_p99] = times.leader;
    println!("put {put} and {put_p99} ns, leader {leader} and {leader_p99} ns");
    assert!(put > least && put < 6_000.0, "{put} and {least} ns");
    assert!(put_p99 >= put && put_p99 < 7_500.0, "{put_p99} ns");
    // An echo and three steps take 3.19 µs. The append to the second follower adds some 60 ns,
    // because it leaves in the same burst as the first one. An append is longer than an echo; the
    // additional bytes take some 30 ns, on two links and in two threads.
    assert!(leader > times.echo && leader < 3_300.0, "{leader} ns");
    assert!(leader_p99 < 3_300.0, "{leader_p99} ns");
}
