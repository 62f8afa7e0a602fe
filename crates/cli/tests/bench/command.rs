//! Rows and tables, exit codes, a clean stop, and no process left running on any path.

use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use dunlin_testkit::child::catches;
use dunlin_testkit::wait::until;
use serde_json::Value;

use super::turns::{Turn, alone};
use super::{FIELDS, dunlin, run, text};

/// Starts a long measurement and waits until it has started its processes. No other measurement
/// runs while the guard is held.
fn long_run() -> (Turn, Child, Vec<u32>) {
    run_of(&[
        "bench",
        "raw",
        "--seconds",
        "600",
        "--runs",
        "3",
        "--json",
        "-",
    ])
}

/// Starts this run; returns it with its processes once its first measurement has begun. No round
/// may fail because of another command.
fn run_of(args: &[&str]) -> (Turn, Child, Vec<u32>) {
    let alone = alone();
    let mut parent = dunlin(args).spawn().unwrap();
    let deadline = Instant::now() + Duration::from_secs(20);
    while Instant::now() < deadline {
        let children = children(parent.id());
        // Two processes measure the ping of the machine; the other two are those of the experiment.
        if children.len() == 4 {
            return (alone, parent, children);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    parent.kill().unwrap();
    parent.wait().unwrap();
    panic!("no measurement has begun");
}

/// The processes that `parent` started, from all of its threads.
pub(super) fn children(parent: u32) -> Vec<u32> {
    let mut children = Vec::new();
    let Ok(threads) = std::fs::read_dir(format!("/proc/{parent}/task")) else {
        return children;
    };
    for thread in threads.map_while(Result::ok) {
        let list = std::fs::read_to_string(thread.path().join("children")).unwrap_or_default();
        children.extend(list.split_whitespace().map(|id| id.parse::<u32>().unwrap()));
    }
    children
}

pub(super) fn signal(process: u32, name: &str) {
    let status = Command::new("kill")
        .args([name, &process.to_string()])
        .status()
        .unwrap();
    assert!(status.success());
}

/// Waits until this process watches for Ctrl-C, which would end it at once before that.
pub(super) fn wait_until_it_watches(process: u32) {
    const INTERRUPT: u32 = 2;
    until(|| catches(process, INTERRUPT));
}

/// Waits until the processes are gone, or are zombies that their new parent has not reaped yet.
pub(super) fn assert_gone(processes: &[u32]) {
    let deadline = Instant::now() + Duration::from_secs(5);
    for process in processes {
        let stat = Path::new("/proc").join(process.to_string()).join("stat");
        while std::fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z ")) {
            assert!(Instant::now() < deadline, "process {process} still runs");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

#[test]
fn rows_have_the_documented_fields_in_order() {
    let out = run(&[
        "bench",
        "raw",
        "--seconds",
        "0.1",
        "--runs",
        "1",
        "--json",
        "-",
    ]);
    assert!(out.status.success(), "{}", text(&out.stderr));
    let mut metrics = Vec::new();
    for line in text(&out.stdout).lines() {
        let row: Value = serde_json::from_str(line).unwrap();
        let mut at = 0;
        for field in FIELDS {
            let name = format!("\"{field}\":");
            at += line[at..]
                .find(&name)
                .unwrap_or_else(|| panic!("{field} in {line}"));
        }
        assert_eq!(row.as_object().unwrap().len(), FIELDS.len(), "{line}");
        assert_eq!(row["experiment"], "raw");
        assert_eq!(row["runs"], 1);
        assert!(row["median"].as_f64().unwrap() > 0.0, "{line}");
        metrics.push(format!("{} {}", row["transport"], row["metric"]).replace('"', ""));
    }
    let count = |name: &str| metrics.iter().filter(|metric| *metric == name).count();
    assert_eq!(count("shm rtt_p50"), 5);
    assert_eq!(count("shm rtt_p999"), 5);
    assert_eq!(count("shm messages_per_s"), 1);
    assert_eq!(count("shm exchanges_per_s"), 10);
    assert_eq!(count("udp rtt_p99"), 6);
    assert_eq!(count("udp packets_per_s"), 7);
    assert_eq!(count("none copied"), 2);
    assert_eq!(count("none tick_read"), 1);
    let table = text(&out.stderr);
    assert!(
        table.contains("machine: ") && table.contains("rtt_p999"),
        "{table}"
    );
}

#[test]
fn a_transport_that_was_not_asked_for_is_not_measured() {
    let args = [
        "bench",
        "raw",
        "--seconds",
        "0.1",
        "--runs",
        "2",
        "--transport",
        "shm",
        "--only",
        "size=32",
    ];
    let out = run(&args);
    assert!(out.status.success(), "{}", text(&out.stderr));
    let table = text(&out.stdout);
    assert!(table.contains("shm") && !table.contains("udp"), "{table}");
    assert!(
        text(&out.stderr).contains("round 2 of 2 done"),
        "{}",
        text(&out.stderr)
    );
}

#[test]
fn rows_go_to_a_file_and_the_table_to_the_output() {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("rows.jsonl");
    let json = path.to_str().unwrap();
    let args = [
        "bench",
        "raw",
        "--seconds",
        "0.1",
        "--runs",
        "1",
        "--transport",
        "shm",
        "--only",
        "size=32",
    ];
    let out = run(&[args.as_slice(), &["--json", json]].concat());
    assert!(out.status.success(), "{}", text(&out.stderr));
    let rows = std::fs::read_to_string(path).unwrap();
    assert!(
        rows.lines()
            .all(|line| serde_json::from_str::<Value>(line).is_ok())
    );
    assert_eq!(
        rows.lines().count(),
        text(&out.stdout).lines().count() - 3,
        "heading, machine"
    );
}

#[test]
fn wrong_usage_is_exit_code_2() {
    for args in [
        ["bench", "nonsense"].as_slice(),
        &["bench", "raw", "--runs", "0"],
        &["bench", "raw", "--seconds", "-1"],
        &["bench", "raw", "--seconds", "nan"],
        &["bench", "raw", "--transport", "pigeon"],
        &["bench", "latency", "--size", "12"],
        &["bench", "raw", "--size", "32"],
        &["bench", "rate", "--only", "batch"],
        &["nonsense"],
    ] {
        assert_eq!(run(args).status.code(), Some(2), "{args:?}");
    }
}

#[test]
fn a_file_that_cannot_be_made_is_exit_code_1_before_anything_is_measured() {
    let begin = Instant::now();
    let out = run(&[
        "bench",
        "raw",
        "--seconds",
        "600",
        "--json",
        "/proc/none/rows",
    ]);
    assert_eq!(out.status.code(), Some(1));
    assert!(
        text(&out.stderr).contains("cannot make /proc/none/rows"),
        "{}",
        text(&out.stderr)
    );
    assert!(begin.elapsed() < Duration::from_secs(10));
}

#[test]
fn help_has_examples() {
    for args in [
        ["--help"].as_slice(),
        &["bench", "--help"],
        &["bench", "compare", "--help"],
    ] {
        let out = run(args);
        assert!(out.status.success() && text(&out.stdout).contains("Examples:"));
        assert!(
            !text(&out.stdout).contains("__role"),
            "the roles are not an interface"
        );
    }
}

#[test]
fn ctrl_c_stops_at_once_with_exit_code_130_and_leaves_no_process() {
    for name in ["-INT", "-TERM"] {
        let (_alone, parent, children) = long_run();
        let begin = Instant::now();
        signal(parent.id(), name);
        let out = parent.wait_with_output().unwrap();
        assert_eq!(out.status.code(), Some(130), "{}", text(&out.stderr));
        assert!(begin.elapsed() < Duration::from_secs(5));
        assert!(
            text(&out.stderr).contains("machine: "),
            "what was measured is shown"
        );
        assert_gone(&children);
    }
}

#[test]
fn a_killed_run_leaves_no_process() {
    let (_alone, mut parent, children) = long_run();
    parent.kill().unwrap();
    parent.wait().unwrap();
    assert_gone(&children);
}

#[test]
fn a_process_of_a_measurement_that_dies_costs_one_round() {
    // Leaves one case, round trips: exchanges have batches of three.
    let only = ["--only", "size=8", "--only", "batch=1"];
    let args = [&["bench", "raw", "--transport", "shm"], &only[..]].concat();
    let (_alone, parent, children) = run_of(
        &[
            args.as_slice(),
            &["--seconds", "6", "--runs", "3", "--json", "-"],
        ]
        .concat(),
    );
    // Kills the client before it reports. A parent that only waited for the report would wait
    // forever.
    signal(*children.iter().max().unwrap(), "-KILL");
    let begin = Instant::now();
    let out = parent.wait_with_output().unwrap();
    let said = text(&out.stderr);
    assert!(out.status.success(), "{said}");
    let mut lines = said
        .lines()
        .filter(|it| it.starts_with("the machine is busy: raw"));
    let line = lines.next().unwrap();
    assert!(
        line.contains("round 1") && line.contains("ended without a report"),
        "{said}"
    );
    assert_eq!(lines.next(), None, "{said}");
    let row: Value = text(&out.stdout).lines().next().unwrap().parse().unwrap();
    assert!(row["runs"].as_u64().unwrap() <= 2, "{row}");
    assert!(begin.elapsed() < Duration::from_secs(20));
    assert_gone(&children);
}

#[test]
fn a_role_with_wrong_parameters_reports_them() {
    for role in ["shm-ping", "udp-send", "copy"] {
        let out = run(&["__role", role]);
        assert!(
            text(&out.stdout).contains(r#"{"failed":"unexpected parameters"#),
            "{role}"
        );
    }
}
