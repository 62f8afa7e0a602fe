//! Scans in workers against scans in dispatch threads.

use super::*;

#[test]
fn an_echo_takes_as_long_as_on_the_papers_network() {
    let echo = echo(1).unwrap();
    println!("echo: {echo} ns");
    assert!((2_050.0..2_150.0).contains(&echo), "{echo} ns");
}

/// With costs like the paper's, scans in workers keep gets fast.
#[test]
fn workers_halve_the_99th_percentile_of_gets() {
    let costs = Costs {
        get: Duration::from_nanos(700),
        scan: Duration::from_micros(12),
    };
    let [workers, dispatch] =
        [Scans::Workers, Scans::Dispatch].map(|scans| run(scans, costs, 1).unwrap());
    println!("p99: {} and {} ns", workers.p99, dispatch.p99);
    assert!(
        workers.p99 < 0.5 * dispatch.p99,
        "{} and {} ns",
        workers.p99,
        dispatch.p99
    );
    assert!(workers.p50 > 2_000.0, "{} ns", workers.p50);
}
