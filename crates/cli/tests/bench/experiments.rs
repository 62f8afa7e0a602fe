//! Every experiment makes the rows that it promises, with its parameters, over real endpoints in
//! real processes.

use std::path::Path;
use std::process::Output;

use serde_json::{Value, json};

use super::{FIELDS, run, text};

/// The rows of a run, and its other output. The form of every row is checked.
pub(super) fn rows(args: &[&str]) -> (Vec<Value>, String) {
    rows_of_one(1, args)
}

/// Like [`rows`], for the first of these runs in which no measurement has failed. On a busy
/// machine, a process may not run for seconds, and a measurement of two processes fails.
pub(super) fn rows_of_one(runs: u32, args: &[&str]) -> (Vec<Value>, String) {
    let fixed = ["--runs", "1", "--json", "-"];
    let args = [&["bench"], args, &fixed].concat();
    let has_failed = |out: &Output| text(&out.stderr).contains("the machine is busy");
    let mut out = run(&args);
    for _ in 1..runs {
        if has_failed(&out) {
            out = run(&args);
        }
    }
    let said = text(&out.stderr).to_owned();
    assert!(out.status.success(), "{said}");
    let row = |line| -> Value { serde_json::from_str(line).unwrap() };
    let rows: Vec<Value> = text(&out.stdout).lines().map(row).collect();
    for row in &rows {
        let fields: Vec<&String> = row.as_object().unwrap().keys().collect();
        assert!(
            FIELDS.iter().all(|field| row.get(field).is_some()),
            "{fields:?}"
        );
        assert_eq!(fields.len(), FIELDS.len(), "{fields:?}");
        for number in ["median", "min", "max"] {
            assert!(row[number].is_number(), "{row}");
        }
    }
    (rows, said)
}

/// The parameters of all rows of a metric, in order.
pub(super) fn params<'a>(rows: &'a [Value], transport: &str, metric: &str) -> Vec<&'a Value> {
    let of = |row: &&Value| row["transport"] == transport && row["metric"] == metric;
    rows.iter().filter(of).map(|row| &row["params"]).collect()
}

pub(super) fn values<'a>(rows: &'a [Value], metric: &'a str) -> impl Iterator<Item = f64> + 'a {
    let of = move |row: &&Value| row["metric"] == metric;
    rows.iter()
        .filter(of)
        .map(|row| row["median"].as_f64().unwrap())
}

#[test]
fn latency_has_every_size_with_a_raw_baseline() {
    let (rows, _) = rows(&["latency", "--seconds", "0.2"]);
    for transport in ["shm", "auto", "udp"] {
        for metric in ["rtt_p50", "rtt_p99", "rtt_p999"] {
            let sizes = [8, 32, 56, 200, 1000].map(|size| json!({ "size": size }));
            assert_eq!(
                params(&rows, transport, metric),
                sizes.iter().collect::<Vec<_>>()
            );
        }
    }
    for row in &rows {
        assert_eq!(
            (&row["experiment"], &row["unit"]),
            (&json!("latency"), &json!("ns"))
        );
        let (median, baseline) = (row["median"].as_f64(), row["baseline"].as_f64());
        let ratio = median.unwrap() / baseline.unwrap();
        assert!(
            (row["ratio"].as_f64().unwrap() - ratio).abs() < 1e-6,
            "{row}"
        );
        assert!(
            row["baseline_name"].as_str().unwrap().starts_with("raw"),
            "{row}"
        );
    }
}

#[test]
fn rate_has_every_pattern_and_batch_and_udp_without_packing() {
    let usual = ["--transport", "shm,udp", "--size", "32"];
    let (rows, said) = rows(&[&["rate", "--seconds", "0.5"], &usual[..]].concat());
    let wanted = |packing: Option<bool>, pattern: &str| -> Vec<Value> {
        let row = |batch| {
            let mut params = json!({
                "pattern": pattern, "batch": batch, "inflight": 60, "size": 32
            });
            if let Some(packing) = packing {
                params["packing"] = packing.into();
            }
            params
        };
        [1, 3, 8, 16].map(row).to_vec()
    };
    let shm = [wanted(None, "one_way"), wanted(None, "symmetric")].concat();
    assert_eq!(
        params(&rows, "shm", "rpc_per_s"),
        shm.iter().collect::<Vec<_>>()
    );
    let udp = params(&rows, "udp", "rpc_per_s");
    for (packing, pattern) in [(true, "one_way"), (false, "one_way"), (true, "symmetric")] {
        let wanted = wanted(Some(packing), pattern);
        assert!(wanted.iter().all(|wanted| udp.contains(&wanted)), "{udp:?}");
    }
    assert_eq!(udp.len(), 12);
    assert!(values(&rows, "rpc_per_s").all(|rate| rate > 0.0));
    assert!(said.contains("with packing / without: "), "{said}");
}

#[test]
fn other_sizes_are_measured_on_request() {
    let chosen = ["--size", "8,1000", "--only", "batch=3", "--seconds", "0.2"];
    for transport in ["shm", "udp"] {
        let over = ["--transport", transport];
        let args = |name| [&[name], chosen.as_slice(), &over].concat();
        let (rates, _) = rows(&args("rate"));
        let sizes: Vec<&Value> = params(&rates, transport, "rpc_per_s");
        let of = |pattern: &str| {
            let is = |it: &&&Value| it["pattern"] == pattern && it["packing"] != false;
            let sizes = sizes
                .iter()
                .filter(is)
                .map(|it| it["size"].as_u64().unwrap());
            sizes.collect::<Vec<_>>()
        };
        assert_eq!(of("one_way"), [8, 1000]);
        assert_eq!(of("symmetric"), [8, 1000]);
        assert!(sizes.iter().all(|it| it["batch"] == 3), "{sizes:?}");
        assert!(values(&rates, "rpc_per_s").all(|rate| rate > 0.0));
        let (trips, _) = rows(&args("latency"));
        let sizes = [8, 1000].map(|size| json!({ "size": size }));
        let found = params(&trips, transport, "rtt_p50");
        assert_eq!(found, sizes.iter().collect::<Vec<_>>());
    }
}

#[test]
fn sessions_that_take_too_long_are_left_out_and_named() {
    let (rows, said) = rows(&["sessions", "--seconds", "2.25", "--transport", "shm"]);
    let sessions = [1, 100, 1_000].map(|sessions| json!({ "sessions": sessions }));
    for metric in ["rpc_per_s", "bytes_per_session", "connects_per_s"] {
        assert_eq!(
            params(&rows, "shm", metric),
            sessions.iter().collect::<Vec<_>>()
        );
        assert!(values(&rows, metric).all(|value| value > 0.0));
    }
    for sessions in [10_000, 20_000] {
        let line = format!("sessions shm, sessions {sessions}: takes");
        assert!(said.contains(&line), "{said}");
    }
}

#[test]
fn idle_measures_first_rpcs_and_processor_time() {
    let (rows, said) = rows(&["idle", "--seconds", "5", "--transport", "shm"]);
    let silences = [1, 10, 100, 1_000].map(|silence_ms| json!({ "silence_ms": silence_ms }));
    for metric in ["rtt_first", "retransmissions"] {
        assert_eq!(
            params(&rows, "shm", metric),
            silences.iter().collect::<Vec<_>>()
        );
    }
    assert_eq!(
        params(&rows, "shm", "cpu_percent"),
        [&json!({"sessions": 100})]
    );
    // The endpoint must not spin. Only a quiet machine shows how little processor time it needs.
    assert!(values(&rows, "cpu_percent").all(|percent| percent < 50.0));
    assert!(said.contains("left out, more --seconds are needed: idle shm, silence_ms 10000"));
}

#[test]
fn slow_handlers_take_the_time_of_their_case() {
    let (rows, _) = rows(&["slow-handler", "--seconds", "1", "--transport", "udp"]);
    let slow = params(&rows, "udp", "rtt_p50");
    assert_eq!(slow.len(), 10);
    for row in rows.iter().filter(|row| row["metric"] == "rtt_p50") {
        let handler_ns = row["params"]["handler_us"].as_f64().unwrap() * 1e3;
        assert!(row["median"].as_f64().unwrap() > handler_ns, "{row}");
        assert!(
            row["baseline"].as_f64().unwrap() >= handler_ns * 0.99,
            "{row}"
        );
    }
    for metric in ["retransmissions", "fast_rtt_p99", "fast_delay_p99"] {
        assert_eq!(params(&rows, "udp", metric), slow);
    }
}

#[test]
fn plain_bench_shows_latency_rate_and_idling_and_draws_them() {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("summary.svg");
    let svg = path.to_str().unwrap();
    let (rows, said) = rows(&["--seconds", "3", "--verbose", "--svg", svg]);
    for transport in ["shm", "udp"] {
        for metric in ["rtt_p50", "rpc_per_s", "rtt_first", "cpu_percent"] {
            assert!(
                !params(&rows, transport, metric).is_empty(),
                "{transport} {metric}"
            );
        }
    }
    let with_baseline = |row: &&Value| row["metric"] != "cpu_percent" && !row["baseline"].is_null();
    assert!(rows.iter().filter(with_baseline).count() > 10);
    assert!(
        said.contains("client: ") && said.contains(" requests_sent"),
        "{said}"
    );
    let svg = std::fs::read_to_string(path).unwrap();
    assert!(
        svg.starts_with("<svg") && svg.contains(">udp</text>"),
        "{svg}"
    );
}

#[test]
fn faces_are_compared_with_the_poll_api() {
    let (rows, _) = rows(&["faces", "--seconds", "1", "--transport", "shm"]);
    let faces = ["poll", "async", "typed"].map(|face| json!({"face": face, "inflight": 60}));
    assert_eq!(
        params(&rows, "shm", "rpc_per_s"),
        faces.iter().collect::<Vec<_>>()
    );
    for row in &rows {
        let is_poll = row["params"]["face"] == "poll";
        assert_eq!(row["baseline"].is_null(), is_poll, "{row}");
        assert_eq!(row["ratio"].is_null(), is_poll, "{row}");
    }
}

#[test]
fn every_factor_is_switched_off_and_on_again() {
    let (rows, said) = rows(&["factors", "--seconds", "0.5"]);
    let names = [
        "batched_timestamps",
        "timely_bypass",
        "rate_limiter_bypass",
        "all_three",
        "common_path",
        "lanes",
        "cells_together",
        "preallocated_responses",
        "zero_copy_requests",
        "everything",
        "timely",
        "control",
    ];
    let all = names.map(|off| json!({"off": off, "batch": 3, "inflight": 60}));
    let all: Vec<&Value> = all.iter().collect();
    assert_eq!(params(&rows, "shm", "rpc_per_s"), all);
    assert_eq!(params(&rows, "shm", "rate_ratio"), all);
    assert!(
        said.contains("Timely costs") && said.contains("Swift"),
        "{said}"
    );
    // Instruction counts do not depend on other work on the machine. Lanes save instructions only
    // in optimized builds, so the row "everything" may be below one here.
    let shortcuts = &names[..4];
    for row in rows.iter().filter(|row| row["unit"] == "instructions") {
        let ratio = row["ratio"].as_f64().unwrap();
        let off = row["params"]["off"].as_str().unwrap();
        assert!(ratio > 1.0 || !shortcuts.contains(&off), "{row}");
    }
    let counted = params(&rows, "shm", "instructions_per_rpc");
    assert!(counted == all || said.contains("no valgrind"), "{said}");
}

#[test]
fn small_rpcs_are_measured_beside_large_messages_and_without_them() {
    let (rows, _) = rows(&["mixed", "--seconds", "1.2", "--transport", "shm"]);
    let directions = ["request", "response"].map(|large| json!({ "large": large }));
    for transport in ["sim", "shm"] {
        for metric in ["rtt_p50", "rtt_p99", "gbps"] {
            let found = params(&rows, transport, metric);
            assert_eq!(found, directions.iter().collect::<Vec<_>>());
        }
    }
    assert!(values(&rows, "gbps").all(|gbps| gbps > 0.0));
    for row in rows.iter().filter(|row| row["metric"] == "rtt_p99") {
        assert_eq!(row["baseline_name"], "without large messages");
        let is_sim = row["transport"] == "sim";
        assert!(!is_sim || row["ratio"].as_f64().unwrap() <= 3.0, "{row}");
    }
}

#[test]
fn parallel_large_messages_are_measured_with_tcp_as_the_baseline() {
    let (rows, _) = rows(&["parallel", "--seconds", "1.2", "--transport", "shm,udp"]);
    let of = |size: u32, sessions, inflight, echoed| {
        json!({
            "size": size, "sessions": sessions, "inflight": inflight, "echoed": echoed
        })
    };
    let wanted = [
        of(65_536, 1, 8, false),
        of(1 << 20, 1, 8, false),
        of(65_536, 8, 60, true),
    ];
    for transport in ["shm", "udp"] {
        for metric in ["gbps", "p99", "mean", "resent"] {
            let found = params(&rows, transport, metric);
            assert_eq!(found, wanted.iter().collect::<Vec<_>>());
        }
    }
    for row in &rows {
        let median = row["median"].as_f64().unwrap();
        match row["metric"].as_str().unwrap() {
            "resent" => assert!(median >= 0.0 && row["ratio"].is_null(), "{row}"),
            "gbps" => assert!(median > 0.0 && row["baseline_name"] == "TCP", "{row}"),
            // One long pause may raise the mean above the 99th percentile.
            "p99" => assert!(row["ratio"].as_f64().unwrap() > 0.0, "{row}"),
            _ => assert!(median > 0.0, "{row}"),
        }
    }
}

#[test]
fn losses_are_measured_in_the_simulator_and_over_udp() {
    let (rows, said) = rows(&["loss", "--seconds", "0.2", "--transport", "udp"]);
    let rate = |loss: f64| json!({ "loss": loss });
    let rates = [0.0, 1e-5, 1e-4, 1e-3, 1e-2].map(rate);
    let udp = params(&rows, "udp", "gbps");
    assert_eq!(udp, rates.iter().collect::<Vec<_>>());
    let sim = params(&rows, "sim", "gbps");
    assert_eq!(sim, [&rates[0], &rates[3], &rates[4]]);
    assert!(values(&rows, "gbps").all(|gbps| gbps > 0.0));
    // Lost packets are sent again, and a note says so.
    assert!(said.contains("note: loss udp, loss 0.01"), "{said}");
}
