//! Scenarios against what the paper measured, and against bad input.

use dunlin_core::{Config, Nanos, SessionOptions};

use super::{Load, Report, Scenario, run};
use crate::net::{CpuCosts, Fabric, FaultRates, Marking, NetConfig};

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
            dma: (Nanos(400), Nanos(400)),
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
            ..Config::default()
        },
        session: SessionOptions {
            credits,
            ..SessionOptions::default()
        },
        loads: vec![Load {
            name: "incast".to_owned(),
            clients: 1..degree + 1,
            servers: 0..1,
            endpoints: 1,
            request_bytes: 8 << 20,
            response_bytes: 32,
            in_flight: 1,
            batch: 1,
            start: Nanos::ZERO,
            spread: Nanos(MILLI),
        }],
        sample_every: Nanos(100_000),
    }
}

fn measured(scenario: &Scenario) -> Report {
    run(scenario, |_| true).unwrap_or_else(|wrong| panic!("{wrong}"))
}

#[test]
fn an_incast_without_control_waits_for_the_credits_of_all() {
    // eRPC, table 5, and half of it with half of the credits.
    for (degree, credits, rtt_us) in [(20, 32, 202.0), (100, 32, 1056.0), (20, 16, 101.0)] {
        let report = measured(&incast(degree, credits));
        let steady = &report.loads[0].steady;
        let p50_us = steady.rtt.p50 as f64 / 1e3;
        assert!((p50_us / rtt_us - 1.0).abs() < 0.1, "{p50_us} µs");
        assert!((20.7..25.3).contains(&steady.gbps), "{steady:?}");
        assert!(steady.jain > 0.95);
    }
}

/// Small RPCs of all to all, as in eRPC §6.2 and §6.3.
fn cluster(hosts: usize, endpoints: usize) -> Scenario {
    let base = incast(1, 32);
    Scenario {
        end: Nanos(20 * MILLI),
        warm_up: Nanos(5 * MILLI),
        hosts,
        net: NetConfig {
            fabric: Fabric {
                racks: if hosts == 100 { 5 } else { 1 },
                spines: 1,
                uplinks: 5,
                uplink_rate: 12_500_000_000,
                ..base.net.fabric.clone()
            },
            cpu: CpuCosts {
                iteration: Nanos(20),
                packet: Nanos(30),
                kilobyte: Nanos(100),
            },
            ..base.net.clone()
        },
        rpc_cost: Nanos(35),
        loads: vec![Load {
            name: "all to all".to_owned(),
            clients: 0..hosts,
            servers: 0..hosts,
            endpoints,
            request_bytes: 32,
            response_bytes: 32,
            in_flight: 60,
            batch: 3,
            start: Nanos::ZERO,
            spread: Nanos(1000),
        }],
        ..base
    }
}

#[test]
#[ignore = "a figure, not a test"]
fn cluster_figure() {
    let number =
        |name: &str, usual: usize| std::env::var(name).map_or(usual, |text| text.parse().unwrap());
    let mut scenario = cluster(number("HOSTS", 11), number("ENDPOINTS", 1));
    scenario.rpc_cost = Nanos(number("RPC_NS", 35) as u64);
    scenario.end = Nanos(number("END_US", 20_000) as u64 * 1000);
    scenario.warm_up = Nanos(number("WARM_US", 5_000) as u64 * 1000);
    let begin = std::time::Instant::now();
    let report = run(&scenario, |at| {
        if at.0 % 1_000_000 == 0 {
            println!("{at:?} after {:?}", begin.elapsed());
        }
        true
    })
    .unwrap();
    println!("{:?} {:#?}", report.loads[0].steady, report.frames[1]);
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    println!(
        "{:?} {}",
        begin.elapsed(),
        status
            .lines()
            .filter(|l| l.starts_with("VmHWM"))
            .collect::<String>()
    );
}
