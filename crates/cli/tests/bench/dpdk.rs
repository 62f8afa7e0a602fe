//! Experiments over DPDK, between two devices of memif. They need DPDK and `libdunlin_dpdk.so`;
//! continuous integration builds that in the step that runs them.

use serde_json::Value;

use super::experiments::rows_of_one;
use super::{run, text};

/// The most runs of an experiment: it is repeated while the machine is too busy.
const RUNS: u32 = 5;

fn rows(args: &[&str]) -> (Vec<Value>, String) {
    rows_of_one(RUNS, args)
}

/// The names of the baselines, row by row.
fn baselines(rows: &[Value]) -> Vec<&str> {
    rows.iter()
        .map(|row| row["baseline_name"].as_str().unwrap())
        .collect()
}

#[test]
#[ignore = "needs DPDK"]
fn every_row_over_dpdk_names_its_device_and_has_a_baseline_of_bare_packets_there() {
    let over = ["--transport", "dpdk", "--seconds", "3"];
    let (latency, _) = rows(&[&["latency", "--size", "32"], &over[..]].concat());
    assert_eq!(baselines(&latency), ["raw DPDK ping-pong"; 3]);
    let one = ["rate", "--only", "batch=16", "--only", "pattern=symmetric"];
    let (rate, _) = rows(&[&one[..], &over[..]].concat());
    assert_eq!(baselines(&rate), ["raw DPDK exchange"; 2]);
    for (row, packing) in rate.iter().zip([true, false]) {
        assert_eq!(row["params"]["packing"], packing);
        assert_eq!(row["params"]["device"], "memif");
    }
    let large = ["--only", "size=1048576", "--only", "inflight=4"];
    let (bandwidth, _) = rows(&[&["bandwidth"], &large[..], &over].concat());
    assert_eq!(bandwidth[0]["baseline_name"], "raw DPDK transfer");
    let (loss, _) = rows(&[&["loss", "--only", "loss=0.001"], &over[..]].concat());
    assert!(loss.iter().any(|row| row["transport"] == "dpdk"));
    let (late, _) = rows(&[&["reorder", "--only", "percent=10"], &over[..]].concat());
    assert!(late.iter().any(|row| row["transport"] == "dpdk"));
}

#[test]
fn experiments_without_dpdk_are_refused() {
    for name in ["idle", "sessions", "mixed"] {
        let out = run(&["bench", name, "--transport", "dpdk"]);
        assert!(!out.status.success(), "{name}");
        let error = text(&out.stderr);
        assert!(error.contains("is measured over"), "{error}");
    }
}
