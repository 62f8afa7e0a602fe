//! A few killed leaders, and a leader that lives.

use dunlin_sim::PortId;

use super::super::REPLICAS;
use super::*;

#[test]
fn a_killed_leader_is_replaced_within_four_time_outs_and_mostly_within_one_and_a_half() {
    let mut times: Vec<Nanos> = (1..20).map(|seed| kill(seed).unwrap()).collect();
    times.sort_unstable();
    assert!(times[0] > Nanos::from_millis(10), "{times:?}");
    let election = Options::DEFAULT.election;
    assert!(times[times.len() - 1] < election.times(4), "{times:?}");
    let median = times[times.len() / 2];
    assert!(median <= Nanos(election.0 * 3 / 2), "{times:?}");
}

/// A put every 100 ms: more would only make the test take longer, because no election depends on
/// them.
#[test]
fn no_election_begins_in_ten_minutes_without_a_fault() {
    let mut stage = Stage::new(1);
    let leader = stage.elect(ELECTING).unwrap();
    let term = term_of(&mut stage, leader);
    stage.client().set_work(Work::Put(Nanos::from_millis(100)));
    stage.world.poke(CLIENT);
    // The client and the replicas make their sessions.
    stage.run_for(Nanos::from_secs(1));
    for _ in 0..600 {
        let next = stage.world.now() + Nanos::from_secs(1);
        stage.world.run_until(next);
        stage.run_for(Nanos::ZERO);
    }
    for port in (0..REPLICAS).map(PortId) {
        assert_eq!(term_of(&mut stage, port), term, "{port:?}");
    }
    assert!(stage.client().took.len() > 5000);
}

fn term_of(stage: &mut Stage, port: PortId) -> u64 {
    let node = stage.replica(port).unwrap().rpc.app().node();
    node.unwrap().term()
}
