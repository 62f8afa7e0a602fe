//! `bench compare` as a user runs it: this build compared with itself and with small programs, and
//! the messages about programs that fail.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::command::{assert_gone, children, signal};
use super::turns::turn;
use super::{dunlin, run, text};

/// One case, measured briefly.
const CASE: [&str; 6] = [
    "latency",
    "--transport",
    "shm",
    "--size=32",
    "--seconds",
    "0.02",
];

/// An answer with the figure of this case.
const ANSWER: &str = r#"{"figures":[{"metric":"rtt_p50","unit":"ns","value":1}]}"#;

/// A peer that runs this script.
fn peer(name: &str, script: &str) -> String {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("peer-{name}"));
    // The file is renamed into place, because the kernel runs no file that is open for writing.
    let new = path.with_extension("new");
    fs::write(&new, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&new, fs::Permissions::from_mode(0o755)).unwrap();
    fs::rename(&new, &path).unwrap();
    format!("peer:{}", path.display())
}

fn compare(with: &[&str], more: &[&str]) -> Output {
    let with: Vec<&str> = with.iter().flat_map(|it| ["--with", it]).collect();
    run(&[&["bench", "compare"], CASE.as_slice(), &with, more].concat())
}

fn rows(out: &Output) -> Vec<Value> {
    let lines = text(&out.stdout).lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn a_build_and_a_peer_are_compared_in_the_same_rounds() {
    let this = env!("CARGO_BIN_EXE_dunlin");
    let log = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("asked");
    let _ = fs::remove_file(&log);
    let peer = peer(
        "answers",
        &format!("echo \"$@\" >> {}; echo '{ANSWER}'", log.display()),
    );
    let out = compare(&[this, &peer], &["--rounds", "3", "--json", "-"]);
    let said = text(&out.stderr);
    assert!(out.status.success(), "{said}");
    let rows = rows(&out);
    let of = |with: &str| rows.iter().filter(|row| row["with"] == with).count();
    assert_eq!((of(this), of(&peer)), (3, 1), "{rows:?}");
    for row in &rows {
        let fields = [
            "experiment",
            "transport",
            "params",
            "metric",
            "unit",
            "with",
            "verdict",
            "ratio",
            "this",
            "other",
            "state",
            "rounds",
            "tried",
            "unsteady",
            "failed",
            "run",
            "other_run",
        ];
        let found: Vec<&String> = row.as_object().unwrap().keys().collect();
        assert_eq!(found.len(), fields.len(), "{found:?}");
        assert!(
            fields.iter().all(|field| row.get(field).is_some()),
            "{found:?}"
        );
        assert_eq!(
            (&row["tried"], &row["params"]["size"]),
            (&3.into(), &32.into())
        );
        assert_eq!(
            row["verdict"], "not measured",
            "three rounds are never enough"
        );
    }
    let asked = fs::read_to_string(log).unwrap();
    let words = "latency transport=shm size=32 seconds=0.02 cpus=";
    assert_eq!(asked.lines().count(), 3);
    assert!(asked.lines().all(|line| line.starts_with(words)), "{asked}");
    assert!(
        said.contains("round 3 of at most 3") && said.contains("not measured"),
        "{said}"
    );
}

#[test]
fn a_peer_may_refuse_a_case() {
    let peer = peer("refuses", r#"echo '{"unsupported":"no shared memory"}'"#);
    let out = compare(&[&peer], &["--rounds", "2", "--json", "-"]);
    assert!(
        out.status.success() && out.stdout.is_empty(),
        "{}",
        text(&out.stderr)
    );
    let note = "does not take part: no shared memory";
    assert!(text(&out.stderr).contains(note), "{}", text(&out.stderr));
}

#[test]
fn programs_that_break_the_contract_end_the_command_with_exit_code_1_and_a_reason() {
    let unit = r#"echo '{"figures":[{"metric":"rtt_p50","unit":"us","value":1}]}'"#;
    for (name, script, what) in [
        ("babbles", "echo hello", "it printed \"hello\""),
        ("is-silent", "true", "it printed nothing"),
        (
            "fails",
            "echo no memory >&2; exit 3",
            "exit status: 3, it said \"no memory\"",
        ),
        ("dies", "kill -9 $$", "signal: 9"),
        (
            "other-unit",
            unit,
            "gives rtt_p50 in \"us\", and it is compared in \"ns\"",
        ),
    ] {
        let peer = peer(name, script);
        let out = compare(&[&peer], &[]);
        let said = text(&out.stderr);
        assert_eq!(out.status.code(), Some(1), "{name}: {said}");
        assert!(
            said.contains(what) && said.contains(&peer),
            "{name}: {said}"
        );
    }
}

#[test]
fn a_round_in_which_a_peer_fails_is_counted_and_the_next_one_begins() {
    let place = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("failed-once");
    let _ = fs::remove_file(&place);
    let script = format!(
        "if [ -e {0} ]; then echo '{ANSWER}'; else touch {0}; echo no time >&2; exit 3; fi",
        place.display()
    );
    let out = compare(
        &[&peer("fails-once", &script)],
        &["--rounds", "3", "--json", "-"],
    );
    let said = text(&out.stderr);
    assert!(out.status.success(), "{said}");
    let rows = rows(&out);
    let counts = ["tried", "failed"].map(|field| rows[0][field].as_u64().unwrap());
    assert_eq!((rows.len(), counts), (1, [3, 1]), "{rows:?}");
    let line = "the machine is busy: latency shm, size 32, round 1: ";
    assert!(said.contains(line) && said.contains("no time"), "{said}");
    assert!(
        said.contains("note: the machine is busy: 1 of 3 rounds"),
        "{said}"
    );
}

#[test]
fn a_peer_that_hangs_is_ended_with_all_that_it_started() {
    let place = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("hanging");
    let _ = fs::remove_file(&place);
    let script = format!("sleep 600 & echo $! > {}; sleep 600", place.display());
    let begin = Instant::now();
    let out = compare(&[&peer("hangs", &script)], &["--limit", "0.5"]);
    assert_eq!(out.status.code(), Some(1));
    let said = text(&out.stderr);
    assert!(said.contains("has not answered for 0.5 s"), "{said}");
    assert!(begin.elapsed() < Duration::from_secs(30));
    let child = fs::read_to_string(place).unwrap().trim().parse().unwrap();
    assert_gone(&[child]);
}

#[test]
fn programs_that_cannot_be_started_are_named() {
    let missing = compare(&["./no-such-dunlin"], &[]);
    assert_eq!(missing.status.code(), Some(1));
    let said = text(&missing.stderr);
    assert!(
        said.contains("there is no program ./no-such-dunlin"),
        "{said}"
    );
    let no_program = compare(&[concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")], &[]);
    let said = text(&no_program.stderr);
    assert!(said.contains("is not a program that may be run"), "{said}");
    let other = compare(&["/bin/true"], &[]);
    let said = text(&other.stderr);
    assert!(said.contains("/bin/true, asked for `latency"), "{said}");
}

#[test]
fn a_dunlin_without_this_command_is_called_too_old() {
    let script = "echo \"error: unrecognized subcommand '__measure'\" >&2; exit 2";
    let old = peer("old", script);
    let out = compare(&[old.trim_start_matches("peer:")], &[]);
    let said = text(&out.stderr);
    assert!(said.contains("from before `bench compare`"), "{said}");
}

#[test]
fn wrong_usage_of_compare_is_exit_code_2() {
    for args in [
        ["latency"].as_slice(),
        &["--with", "peer:", "latency"],
        &["--with", "x", "factors"],
        &["--with", "x", "nonsense"],
        &["--with", "x", "latency", "--size", "9"],
        &["--with", "x", "sessions", "--size", "8"],
        &["--with", "x", "latency", "--only", "size=7"],
        &["--with", "x", "latency", "--rounds", "0"],
        &["--with", "x", "incast"],
    ] {
        let out = run(&[&["bench", "compare"], args].concat());
        assert_eq!(
            out.status.code(),
            Some(2),
            "{args:?}: {}",
            text(&out.stderr)
        );
    }
}

#[test]
fn ctrl_c_writes_the_rows_so_far_and_leaves_no_process() {
    let _turn = turn();
    let place = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("asleep");
    let _ = fs::remove_file(&place);
    // The peer answers once, and sleeps in the next round.
    let script = format!(
        "if [ -e {0} ]; then echo $$ > {0}; sleep 600; else touch {0}; echo '{ANSWER}'; fi",
        place.display()
    );
    let peer = peer("sleeps", &script);
    let args = ["bench", "compare", "--with", &peer, "--json", "-"];
    let parent = dunlin(&[args.as_slice(), &CASE].concat()).spawn().unwrap();
    let deadline = Instant::now() + Duration::from_secs(20);
    let asleep = loop {
        let text = fs::read_to_string(&place).unwrap_or_default();
        if let Ok(process) = text.trim().parse::<u32>() {
            break process;
        }
        assert!(Instant::now() < deadline, "no second round has begun");
        std::thread::sleep(Duration::from_millis(20));
    };
    let all = [children(parent.id()), vec![asleep]].concat();
    signal(parent.id(), "-INT");
    let out = parent.wait_with_output().unwrap();
    assert_eq!(out.status.code(), Some(130), "{}", text(&out.stderr));
    let rows = rows(&out);
    assert_eq!((rows.len(), &rows[0]["tried"]), (1, &1.into()), "{rows:?}");
    assert_gone(&all);
}
