//! The partners of clients, and hosts whose threads are paused.

use std::collections::BTreeSet;

use super::{Endpoints, pairs};
use crate::scenario::sweep::{Case, Family};
use crate::scenario::{Nanos, Scheme};
use crate::world::Act;
use crate::world::net::{HostId, PortId};
use crate::world::rng::Rng;

#[test]
fn each_server_has_a_client_of_its_own_other_than_itself() {
    for seed in 0..50 {
        let all: Vec<usize> = (10..17).collect();
        let drawn = pairs(&all, all.clone(), &mut Rng::new(seed));
        assert!(drawn.iter().all(|(client, server)| client != server));
        let servers: BTreeSet<usize> = drawn.iter().map(|(_, server)| *server).collect();
        assert_eq!(servers.len(), all.len());
    }
    let draw = |seed| pairs(&[1, 2, 3, 4], vec![1, 2, 3, 4], &mut Rng::new(seed));
    assert!((1..20).any(|seed| draw(seed) != draw(0)));
}

#[test]
fn clients_that_are_not_servers_take_servers_in_turn() {
    let drawn = pairs(&[1, 2, 3, 4, 5], vec![5, 6], &mut Rng::new(1));
    let of_six = drawn.iter().filter(|(_, server)| *server == 6).count();
    assert_eq!(of_six, 3, "{drawn:?}");
    assert_eq!(drawn[4], (5, 6));
}

/// The server's host, and the first client's host.
const SERVER: usize = 0;
const CLIENT: usize = 1;

/// The time of a run.
const RUN: Nanos = Nanos::from_millis(80);

/// A host whose thread is alternately paused and running.
#[derive(Clone, Copy, Debug)]
struct Turns {
    host: usize,
    stands_us: u64,
    runs_us: u64,
    /// The thread runs before this time.
    from_us: u64,
}

/// The number of 64 KB requests that end within the run, if each of `senders` clients has four in
/// flight. `measured`: hosts do not know the round trip of the empty network.
fn ended(scheme: Scheme, senders: usize, measured: bool, turns: &[Turns]) -> u64 {
    let case = Case {
        family: Family::Incast,
        gbps: 25,
        rtt_us: 6,
        buffer_kb: 2000,
        senders,
        in_flight: 4,
        measured,
        noise_us: 0,
        seed: 1,
    };
    let mut scenario = case.scenario(scheme);
    scenario.loads[0].request_bytes = 64 << 10;
    let mut endpoints = Endpoints::build(&scenario).expect("the case is right");
    // The times at which a thread stops or continues.
    let mut changes = Vec::new();
    for turn in turns {
        let mut at_us = turn.from_us;
        while at_us < RUN.0 / 1000 {
            changes.push((at_us, Act::Pause(HostId(turn.host))));
            changes.push((at_us + turn.stands_us, Act::Resume(HostId(turn.host))));
            at_us += turn.stands_us + turn.runs_us;
        }
    }
    changes.sort_by_key(|(at_us, _)| *at_us);
    for (at_us, act) in changes {
        endpoints
            .run_until(Nanos::from_micros(at_us))
            .expect("no invariant breaks");
        endpoints.world.act(act);
    }
    endpoints.run_until(RUN).expect("no invariant breaks");
    let completed = (1..=senders).map(|client| {
        let node = endpoints.world.node(PortId(client));
        node.expect("no process ends").counters().completions
    });
    completed.sum()
}

fn turns(host: usize, stands_us: u64, runs_us: u64, from_us: u64) -> Turns {
    Turns {
        host,
        stands_us,
        runs_us,
        from_us,
    }
}

#[test]
fn sessions_with_congestion_control_progress_while_hosts_pause() {
    let in_turn = |micros| {
        let [server, client] = [(SERVER, micros), (CLIENT, 0)];
        [server, client].map(|(host, from_us)| turns(host, micros, micros, from_us))
    };
    let server = |stands_us, runs_us| [turns(SERVER, stands_us, runs_us, 0); 1].to_vec();
    for (senders, measured) in [(1, true), (1, false), (3, false)] {
        let all = ended(Scheme::Swift, senders, measured, &[]);
        for turns in [
            // As if two threads shared a processor: neither runs while the other does.
            in_turn(4000).to_vec(),
            in_turn(1000).to_vec(),
            vec![
                turns(CLIENT, 4000, 4000, 0),
                turns(SERVER, 4000, 3000, 4100),
            ],
            server(4000, 4000),
            server(4000, 5),
            server(1000, 10),
        ] {
            let with = ended(Scheme::Swift, senders, measured, &turns);
            let without = ended(Scheme::None, senders, measured, &turns);
            let runs = turns.iter().fold(all, |all, it| {
                all * it.runs_us / (it.runs_us + it.stands_us)
            });
            let most = runs.min(without);
            assert!(
                2 * with >= most,
                "{with} of {most}, {senders} {measured} {turns:?}"
            );
        }
    }
}
