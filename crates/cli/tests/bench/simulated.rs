//! `dunlin sim` as a user runs it: shipped files, wrong ones, and a clean stop.

use std::time::Duration;

use dunlin_testkit::folder::Folder;
use serde_json::Value;

use super::command::signal;
use super::turns::turn;
use super::{dunlin, run, text};

const HELLO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/hello.toml");

const LATE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../scenarios/late-repeat.toml"
);

fn rows(bytes: &[u8]) -> Vec<Value> {
    let lines = text(bytes).lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn a_sweep_gives_an_object_for_each_run_and_the_same_ones_again() {
    let args = ["sim", HELLO, "--set", "end_ms=1.2", "--json", "-"];
    let out = run(&args);
    assert!(out.status.success(), "{}", text(&out.stderr));
    let rows = rows(&out.stdout);
    assert_eq!(rows.len(), 2);
    assert_eq!(rows[1]["params"]["load.0.in_flight"], 8);
    let steady = &rows[0]["loads"][0]["steady"];
    // A packet and its answer between two hosts of a rack (eRPC, table 2: 3.7 µs).
    let p50 = steady["latency_us"]["p50"].as_f64().unwrap();
    assert!((3.5..4.0).contains(&p50), "{steady}");
    assert_eq!(rows[0]["complete"], true);
    assert_eq!(run(&args).stdout, out.stdout);
    let seeded = run(&[&args[..], &["--seed", "2"]].concat());
    assert_ne!(seeded.stdout, out.stdout);
}

#[test]
fn a_scenario_of_channels_exits_with_1_if_its_results_are_not_as_expected() {
    let args = ["sim", LATE, "--json", "-"];
    let out = run(&args);
    assert!(out.status.success(), "{}", text(&out.stderr));
    let row = &rows(&out.stdout)[0];
    assert_eq!(row["answered"], 1500, "{row}");
    assert!(row["late_runs"].as_u64().unwrap() > 0, "{row}");
    let more = ["--set", "calls.idempotent_percent=0"];
    let out = run(&[&args[..], &more].concat());
    assert_eq!(out.status.code(), Some(1));
    let says = text(&out.stderr);
    assert!(says.contains("most_failed = 0, but there are "), "{says}");
    let out = run(&["sim", LATE, "--plot", "none.svg"]);
    assert_eq!(out.status.code(), Some(1));
}

#[test]
fn a_wrong_file_is_refused_with_key_and_line() {
    let path = std::env::temp_dir().join(format!("dunlin-sim-{}.toml", std::process::id()));
    let wrong = std::fs::read_to_string(HELLO)
        .unwrap()
        .replace("gbps = 25.0", "gbps = 0.0");
    std::fs::write(&path, wrong).unwrap();
    let name = path.to_str().unwrap();
    let out = run(&["sim", name]);
    assert_eq!(out.status.code(), Some(1));
    let says = format!("{name}:12: network.gbps: must be above 0");
    assert!(text(&out.stderr).contains(&says), "{}", text(&out.stderr));
    assert!(out.stdout.is_empty(), "nothing runs");
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn more_hosts_than_memory_allows_are_refused() {
    let out = run(&["sim", HELLO, "--set", "network.hosts=1000000"]);
    assert_eq!(out.status.code(), Some(1));
    let says = text(&out.stderr);
    assert!(
        says.contains("network.hosts") && says.contains("MB"),
        "{says}"
    );
}

#[test]
fn pictures_and_frames_are_written() {
    let path = |name: &str| {
        let file = format!("dunlin-sim-{}-{name}", std::process::id());
        std::env::temp_dir().join(file)
    };
    let (svg, pcap) = (path("x.svg"), path("x.pcap"));
    let set = ["--set", "end_ms=1.2", "--set", "load.0.in_flight=1"];
    let files = [
        "--plot",
        svg.to_str().unwrap(),
        "--pcap",
        pcap.to_str().unwrap(),
    ];
    let out = run(&[&["sim", HELLO][..], &set, &files].concat());
    assert!(out.status.success(), "{}", text(&out.stderr));
    assert!(
        std::fs::read_to_string(&svg)
            .unwrap()
            .contains("class=\"k0 thin\"")
    );
    // A record of 16 bytes, 42 bytes of lower headers, our header and 32 bytes of data.
    let frames = std::fs::read(&pcap).unwrap().len() - 24;
    assert_eq!(frames % (16 + 42 + 24 + 32), 0);
    std::fs::remove_file(&svg).unwrap();
    std::fs::remove_file(&pcap).unwrap();
}

#[test]
fn ctrl_c_reports_what_was_measured_so_far() {
    let _turn = turn();
    let one = ["--set", "load.0.in_flight=1"];
    let set = [
        &one[..],
        &["--set", "end_ms=1e6", "--set", "sample_us=500.0"],
    ]
    .concat();
    let folder = Folder::new("interrupted");
    let frames = folder.path("frames.pcap");
    let args = [&["sim", HELLO, "--json", "-", "--pcap", &frames], &set[..]].concat();
    let mut child = dunlin(&args).spawn().unwrap();
    // The command watches signals before it makes the file. A file longer than its header has
    // frames, so some time has been simulated.
    while std::fs::metadata(&frames).map_or(0, |file| file.len()) <= 24 {
        assert!(
            child.try_wait().unwrap().is_none(),
            "the run ended by itself"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
    signal(child.id(), "-INT");
    let out = child.wait_with_output().unwrap();
    assert_eq!(out.status.code(), Some(130), "{}", text(&out.stderr));
    let rows = rows(&out.stdout);
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0]["complete"], false);
    assert!(rows[0]["simulated_us"].as_f64().unwrap() > 0.0);
}
