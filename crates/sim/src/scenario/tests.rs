//! Scenarios against the paper's measurements, and against bad input.

use dunlin_core::{Config, Nanos, Scheme, SessionOptions};

use super::{Arrivals, CHECK, Load, Partners, Report, Scenario, run};
use crate::world::net::{CpuCosts, Fabric, FaultRates, Marking, NetConfig};

const MILLI: u64 = 1_000_000;

/// 8 MB requests of `degree` hosts to one, as in eRPC §6.5.
fn incast(degree: usize, credits: u32) -> Scenario {
    Scenario {
        seed: 1,
        end: Nanos(10 * MILLI),
        warm_up: Nanos(5 * MILLI),
        hosts: degree + 1,
        net: NetConfig {
            line_rate: 3_125_000_000,
            cable: Nanos(300),
            nic_bytes: 1 << 20,
            fabric: Fabric {
                buffer_bytes: 12 << 20,
                alpha: 8.0,
                marking: Marking::NEVER,
                latency: Nanos(300),
                ..Fabric::default()
            },
            frame_overhead: 66,
            rx_queue: 4096,
            data_size: 1024,
            frame_bytes: 0,
            dma: (Nanos(800), Nanos(800)),
            cpu: CpuCosts {
                iteration: Nanos(20),
                packet: Nanos(50),
                kilobyte: Nanos(100),
            },
            ..NetConfig::default()
        },
        rpc_cost: Nanos(50),
        faults: FaultRates::NONE,
        endpoint: Config {
            hugepages: false,
            readable_buffers: true,
            pool_bytes: 1 << 40,
            receive_budget: 1 << 40,
            session_receive_budget: 1 << 40,
            check: CHECK,
            ..Config::default()
        },
        loads: vec![Load {
            name: "incast".to_owned(),
            clients: 1..degree + 1,
            servers: 0..1,
            endpoints: 1,
            partners: Partners::Drawn,
            session: SessionOptions::DEFAULT.with_credits(credits),
            request_bytes: 8 << 20,
            response_bytes: 32,
            in_flight: 1,
            arrivals: Arrivals::default(),
            start: Nanos::ZERO,
            spread: Nanos(MILLI),
            stop: Nanos::MAX,
        }],
        sample_every: Nanos(100_000),
    }
}

fn measured(scenario: &Scenario) -> Report {
    run(scenario, |_| true).unwrap_or_else(|wrong| panic!("{wrong}"))
}

#[test]
fn an_incast_without_control_waits_for_the_credits_of_all() {
    // The round trips of eRPC, table 5; half of the credits give half of the round trip.
    for (degree, credits, rtt_us) in [(20, 32, 202.0), (100, 32, 1056.0), (20, 16, 101.0)] {
        let report = measured(&incast(degree, credits));
        let steady = &report.loads[0].steady;
        let p50_us = steady.rtt.p50 as f64 / 1e3;
        assert!((p50_us / rtt_us - 1.0).abs() < 0.1, "{p50_us} µs");
        assert!((20.7..25.3).contains(&steady.gbps), "{steady:?}");
        assert!(steady.jain > 0.95);
    }
}

#[test]
fn equal_large_requests_of_a_session_take_about_the_same_time() {
    // Like shared memory, this path is faster than the processors and has no congestion control.
    for (request_bytes, response_bytes) in [(64 << 10, 32), (1 << 20, 32), (64 << 10, 64 << 10)] {
        let mut scenario = incast(1, 32);
        scenario.net.line_rate = 50_000_000_000;
        scenario.net.cable = Nanos(50);
        scenario.net.dma = (Nanos(50), Nanos(50));
        scenario.net.fabric.latency = Nanos(1);
        scenario.net.data_size = 4096;
        scenario.net.cpu.kilobyte = Nanos(50);
        scenario.endpoint.scheme = None;
        let load = &mut scenario.loads[0];
        (load.request_bytes, load.response_bytes) = (request_bytes, response_bytes);
        load.in_flight = 8;
        let report = measured(&scenario);
        let steady = &report.loads[0].steady;
        let (p99, mean) = (steady.latency.p99 as f64, steady.latency.mean as f64);
        assert!(steady.completed > 50, "{steady:?}");
        assert!(p99 <= 1.5 * mean, "{request_bytes} B: {p99} and {mean} ns");
        assert_eq!(steady.resent, 0);
    }
}

fn batches_of(batch: u32) -> Arrivals {
    Arrivals::Closed {
        batch,
        think: Nanos::ZERO,
    }
}

/// Small RPCs of all to all, as in eRPC §6.2 and §6.3.
fn cluster(hosts: usize) -> Scenario {
    let base = incast(1, 32);
    Scenario {
        end: Nanos(20 * MILLI),
        warm_up: Nanos(5 * MILLI),
        hosts,
        net: NetConfig {
            cpu: CpuCosts {
                iteration: Nanos(20),
                packet: Nanos(30),
                kilobyte: Nanos(100),
            },
            ..base.net.clone()
        },
        rpc_cost: Nanos(31),
        loads: vec![Load {
            name: "all to all".to_owned(),
            clients: 0..hosts,
            servers: 0..hosts,
            endpoints: 1,
            partners: Partners::Drawn,
            request_bytes: 32,
            response_bytes: 32,
            in_flight: 60,
            arrivals: batches_of(3),
            spread: Nanos(1000),
            ..base.loads[0].clone()
        }],
        ..base
    }
}

#[test]
fn a_thread_issues_as_many_requests_as_on_the_papers_machines() {
    // eRPC, figure 4: 4.96 million a second. The costs were chosen to give this rate and are
    // frozen.
    let report = measured(&Scenario {
        end: Nanos(3 * MILLI / 2),
        warm_up: Nanos(MILLI / 2),
        ..cluster(11)
    });
    let steady = &report.loads[0].steady;
    let ratio = steady.rpcs_per_host / 4.96e6;
    assert!((0.98..1.02).contains(&ratio), "{ratio}");
    assert_eq!((steady.failed, steady.resent), (0, 0));
}

#[test]
fn hosts_with_partners_of_their_own_use_all_of_their_cables() {
    // If clients draw a server for each request, some servers wait while others have several
    // clients.
    let mut scenario = cluster(8);
    scenario.end = Nanos(3 * MILLI);
    scenario.warm_up = Nanos(MILLI);
    let load = &mut scenario.loads[0];
    (load.request_bytes, load.response_bytes) = (64 << 10, 64 << 10);
    (load.in_flight, load.arrivals) = (1, batches_of(1));
    let p99 = |scenario: &Scenario| measured(scenario).loads[0].steady.latency.p99;
    let drawn = p99(&scenario);
    scenario.loads[0].partners = Partners::Fixed;
    let fixed = p99(&scenario);
    // Twice 64 packets of 1114 bytes take 45.6 µs at 25 Gb/s, and 58 µs with round trips and the
    // work of threads. Each thread also serves another client during this time.
    assert!((46_000..125_000).contains(&fixed), "{fixed}");
    assert!(drawn > fixed * 4 / 3, "{drawn} and {fixed}");
}

#[test]
fn a_run_follows_from_its_seed_and_can_end_early() {
    let scenario = Scenario {
        end: Nanos(2 * MILLI),
        warm_up: Nanos(MILLI),
        ..incast(5, 32)
    };
    let first = measured(&scenario);
    assert_eq!(measured(&scenario), first);
    let other = Scenario {
        seed: 2,
        ..scenario.clone()
    };
    assert_ne!(measured(&other).digest, first.digest);
    let mut steps = 0;
    let cut = run(&scenario, |_| {
        steps += 1;
        steps <= 6
    });
    let cut = cut.unwrap();
    assert_eq!(cut.end, Nanos(600_000));
    assert_eq!(cut.series[..], first.series[..6]);
}

#[test]
fn a_scenario_that_needs_too_much_memory_is_refused_before_it_runs() {
    let sides = |scenario: &Scenario| scenario.sizes().0;
    let small = cluster(11);
    assert_eq!(sides(&small), 2 * 11 * 10);
    let mut large = cluster(100);
    large.loads[0].endpoints = 10;
    assert_eq!(sides(&large), 2 * 1000 * 999);
    large.loads[0].partners = Partners::Fixed;
    assert_eq!(sides(&large), 2 * 1000);
    large.loads[0].partners = Partners::Drawn;
    // A measurement gave 1.1 GB.
    assert!((1 << 30..2 << 30).contains(&large.memory()));
    large.loads[0].endpoints = 1000;
    assert!(large.memory() > 1 << 40);
}

/// Four clients of a server, with small requests.
fn small(arrivals: Arrivals) -> Scenario {
    let mut scenario = incast(4, 32);
    let load = &mut scenario.loads[0];
    (load.request_bytes, load.response_bytes) = (100, 100);
    (load.arrivals, load.in_flight) = (arrivals, 8);
    scenario
}

#[test]
fn an_open_loop_begins_requests_at_its_rate_whatever_the_network_does() {
    let gap = Nanos(10_000);
    let scenario = small(Arrivals::Open { gap });
    let steady = measured(&scenario).loads.remove(0).steady;
    // Four clients for 5 ms: 2000 arrivals, with a standard deviation of 45.
    assert!((1820..2180).contains(&steady.completed), "{steady:?}");
    assert!(steady.latency.p50 < 10_000, "nothing waits");
    // With one request at a time, each of which takes 100 µs, nine of ten arrivals wait, and each
    // waits longer than the previous one.
    let mut slow = scenario;
    slow.loads[0].in_flight = 1;
    slow.net.cable = Nanos(25_000);
    let steady = measured(&slow).loads.remove(0).steady;
    assert!((150..220).contains(&steady.completed), "{steady:?}");
    assert!(
        steady.latency.p50 > 2 * MILLI,
        "their time began when they arrived"
    );
    let (across, back) = (steady.latency_across, steady.latency_back);
    assert!(
        across.p50 > 2 * MILLI && back.max < MILLI / 10,
        "they wait before they leave"
    );
}

#[test]
fn clients_that_have_stopped_begin_no_waiting_requests() {
    let overload = |gap, stop| {
        let mut scenario = small(Arrivals::Open { gap });
        scenario.loads[0].stop = stop;
        let load = measured(&scenario).loads.remove(0);
        load.opening.completed + load.steady.completed
    };
    let (gap, half) = (Nanos(500), Nanos(15 * MILLI / 2));
    let [all, left] = [Nanos::MAX, half].map(|stop| overload(gap, stop));
    assert!(left < all * 7 / 8, "{left} of {all}");
    // No run may have more waiting arrivals than this. They are never issued, and take no memory.
    let flood = overload(Nanos(1), half);
    assert!((left / 2..2 * left).contains(&flood), "{flood} and {left}");
}

#[test]
fn clients_pause_between_batches_and_stop() {
    let think = Nanos(100_000);
    let mut scenario = small(Arrivals::Closed { batch: 1, think });
    scenario.loads[0].in_flight = 1;
    let rpcs = |scenario: &Scenario| measured(scenario).loads.remove(0).steady.completed;
    // Four clients, each with one request in 104 µs: 192 requests, with a standard deviation of 14.
    let thinking = rpcs(&scenario);
    assert!((140..250).contains(&thinking), "{thinking}");
    scenario.loads[0].stop = Nanos(15 * MILLI / 2);
    let left = rpcs(&scenario);
    assert!((50..130).contains(&left), "{left}");
}

#[test]
fn each_load_has_a_scheme_and_credits_of_its_own() {
    let mut scenario = incast(2, 4);
    let other = Load {
        name: "other".to_owned(),
        clients: 2..3,
        session: SessionOptions::DEFAULT
            .with_credits(32)
            .with_scheme(Scheme::Swift),
        ..scenario.loads[0].clone()
    };
    scenario.loads[0].clients = 1..2;
    scenario.loads.push(other);
    let report = measured(&scenario);
    let [few, many] = [0, 1].map(|index| report.loads[index].steady.gbps_across);
    assert!(many > 2.0 * few, "{few} and {many}: shares follow credits");
}

#[test]
fn a_report_has_each_client_and_direction() {
    let mut scenario = small(Arrivals::default());
    scenario.loads[0].response_bytes = 1000;
    scenario.loads.push(Load {
        name: "late".to_owned(),
        clients: 4..5,
        start: Nanos(9 * MILLI),
        spread: Nanos(1),
        ..scenario.loads[0].clone()
    });
    scenario.loads[0].clients = 1..4;
    let report = measured(&scenario);
    let steady = &report.loads[0].steady;
    assert_eq!(steady.clients.len(), 3);
    let hosts = steady.clients.iter().map(|client| client.host);
    assert_eq!(hosts.collect::<Vec<_>>(), [1, 2, 3]);
    assert!((steady.gbps_back / steady.gbps_across - 10.0).abs() < 0.2);
    assert!(steady.jain > 0.99 && steady.jain_back > 0.99);
    let sum: f64 = steady.clients.iter().map(|client| client.rpcs).sum();
    assert!((sum / steady.rpcs - 1.0).abs() < 1e-9);
    for client in &steady.clients {
        let (own, all) = (client.latency.mean as f64, steady.latency.mean as f64);
        assert!((own / all - 1.0).abs() < 0.02, "{own} and {all}");
        let (across, back) = (client.latency_across.mean, client.latency_back.mean);
        assert!(((across + back) as f64 / own - 1.0).abs() < 0.02);
        // Responses are longer than requests, and share the cable of the server.
        assert!(back > across + 400, "{across} and {back}");
    }
    let late = &report.loads[1];
    assert_eq!(late.opening.completed, 0);
    // The late client has a fifth of the time, but a server's thread to itself.
    let ratio = late.steady.clients[0].rpcs / steady.clients[0].rpcs;
    assert!((0.14..0.22).contains(&ratio), "{ratio}");
}

/// Three groups of senders over two bottlenecks in a row: `both` crosses the uplink and the cable
/// of host 6, and each of the others crosses only one of them.
#[test]
fn flows_over_two_bottlenecks_in_a_row_have_less_than_those_over_one() {
    let mut scenario = incast(7, 32);
    scenario.net.fabric = Fabric {
        racks: 2,
        neighbours: 4,
        spines: 1,
        uplinks: 1,
        uplink_rate: 3_125_000_000,
        ..scenario.net.fabric
    };
    let group = |name: &str, client: usize, server: usize| Load {
        name: name.to_owned(),
        clients: client..client + 1,
        servers: server..server + 1,
        spread: Nanos(1000),
        ..scenario.loads[0].clone()
    };
    let loads = vec![
        group("both", 0, 6),
        group("first", 1, 5),
        group("second", 7, 6),
    ];
    scenario.loads = loads;
    let report = measured(&scenario);
    let rate = |index: usize| report.loads[index].steady.gbps_across;
    for cable in [rate(0) + rate(1), rate(0) + rate(2)] {
        assert!((20.0..23.1).contains(&cable), "{cable}: each is full");
    }
    assert!(rate(0) < rate(1) && rate(0) < rate(2), "it waits twice");
}
