//! Each kind of fault does what its name says.

use dunlin_channel::{Backoff, Pick, Retry};

use super::*;

const SECOND: Nanos = Nanos::from_secs(1);

/// Two servers, which answer at once, and a client with a thousand calls in a second.
fn script(idempotent: Ppm, strikes: &[Strike]) -> Script {
    let server = Answers {
        mean: Nanos::from_micros(100),
        refuses: Ppm::NEVER,
        fails: Ppm::NEVER,
    };
    Script {
        seed: 8,
        end: SECOND,
        channel: Config {
            lookup: Some(Nanos::from_millis(50)),
            ..Config::DEFAULT
        },
        servers: vec![server; 2],
        clients: 1,
        begin: Nanos::ZERO,
        gap: Nanos::from_millis(1),
        idempotent,
        dropped: Ppm::NEVER,
        keys: 0,
        window: 8,
        rates: FaultRates::NONE,
        strikes: strikes.to_vec(),
    }
}

fn strike(what: What, span: Nanos) -> Strike {
    Strike {
        at: Nanos::from_millis(300),
        server: 0,
        what,
        span,
    }
}

fn played(script: &Script) -> Played {
    let played = play(script, |_| true).unwrap_or_else(|why| panic!("{why}"));
    played.unwrap()
}

#[test]
fn without_faults_every_call_runs_once() {
    let Played { report, tally } = played(&script(Ppm::NEVER, &[]));
    assert_eq!(report.counters.calls, 1000);
    assert_eq!((tally.answered, tally.failed), (1000, [0; 3]));
    assert_eq!(tally.runs.values().sum::<u64>(), 1000);
    assert!(tally.runs.values().all(|runs| *runs > 300), "{tally:?}");
    assert_eq!(tally.late_runs, 0);
}

/// A server is stopped, and another one answers the repeats of its calls. When the first one
/// continues, it runs the requests that it had already received.
#[test]
fn a_server_that_was_stopped_runs_calls_that_another_one_has_answered() {
    let stop = strike(What::Stop, Nanos::from_millis(600));
    let Played { tally, .. } = played(&script(Ppm::ALWAYS, &[stop]));
    assert_eq!((tally.answered, tally.failed), (1000, [0; 3]));
    assert!(tally.late_runs > 0, "{tally:?}");
    // Calls that may not run twice fail instead.
    let Played { tally, .. } = played(&script(Ppm::NEVER, &[stop]));
    assert!(
        (1..=tally.failed[2]).contains(&tally.late_runs),
        "{tally:?}"
    );
}

#[test]
fn a_server_that_is_killed_costs_calls_and_one_that_drains_costs_none() {
    let busy = |what| {
        let mut script = script(Ppm::NEVER, &[strike(what, Nanos::from_millis(100))]);
        script.servers[0].mean = Nanos::from_millis(5);
        // Every second call goes to the slow server, so some are there when it is struck.
        script.channel.pick = Pick::RoundRobin;
        played(&script)
    };
    let (killed, drained) = (busy(What::Crash), busy(What::Drain));
    assert!(killed.tally.failed[2] > 0, "{killed:?}");
    assert_eq!(killed.report.counters.drains, 0);
    assert_eq!(drained.tally.failed, [0; 3], "{drained:?}");
    assert_eq!(drained.report.counters.drains, 1);
}

#[test]
fn a_server_that_has_left_the_list_gets_no_calls() {
    let gone = strike(What::Unlist, SECOND);
    let all = played(&script(Ppm::NEVER, &[]));
    let listed = played(&script(Ppm::NEVER, &[gone]));
    assert!(listed.tally.runs[&0] < all.tally.runs[&0] * 3 / 4);
    assert_eq!(listed.tally.answered, 1000);
}

#[test]
fn options_of_the_channel_have_an_effect() {
    let stop = strike(What::Stop, Nanos::from_millis(600));
    let mut alone = script(Ppm::ALWAYS, &[stop]);
    let pause = Backoff {
        least: Nanos::from_millis(1),
        first: Nanos::from_millis(1),
        factor: 2,
        most: Nanos::from_millis(1),
    };
    alone.channel.retry = Retry { attempts: 1, pause };
    assert!(played(&alone).tally.failed[2] > 0);
    alone.channel.deadline = Some(Nanos::from_millis(20));
    let Played { report, tally } = played(&alone);
    assert!(report.counters.expired > 0, "{report:?}");
    assert!(tally.longest < Nanos::from_millis(25), "{tally:?}");
}

#[test]
fn a_run_ends_when_its_program_says_so_and_is_deterministic() {
    let script = script(Ppm::ALWAYS, &[strike(What::Crash, SECOND)]);
    assert_eq!(play(&script, |now| now < Nanos::from_millis(10)), Ok(None));
    assert_eq!(played(&script), played(&script));
}
