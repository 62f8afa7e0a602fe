//! `gopt bench` as a user runs it. Tables are small, because these tests are not about speed.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

fn bench(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gopt"));
    command
        .arg("bench")
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn run(args: &[&str]) -> Output {
    bench(args).output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

fn temporary(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

/// The rows of a run with one round, and its text for people.
fn rows(args: &[&str]) -> (Vec<Value>, String) {
    let out = run(&[args, &["--runs", "1", "--json", "-"]].concat());
    assert!(out.status.success(), "{}", text(&out.stderr));
    let lines = text(&out.stdout).lines();
    let rows = lines.map(|line| serde_json::from_str(line).unwrap());
    (rows.collect(), text(&out.stderr).to_owned())
}

/// The parameters of the rows of a metric.
fn params<'a>(rows: &'a [Value], metric: &str) -> Vec<&'a Value> {
    let rows = rows.iter().filter(|row| row["metric"] == metric);
    rows.map(|row| &row["params"]).collect()
}

fn values(rows: &[Value], metric: &str) -> impl Iterator<Item = f64> {
    let rows = rows.iter().filter(move |row| row["metric"] == metric);
    rows.map(|row| row["median"].as_f64().unwrap())
}

#[test]
fn gopt_has_every_form_shape_and_width_and_draws_them() {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("gopt.svg");
    let svg = path.to_str().unwrap();
    let table = ["--table-mib", "8", "--batch", "1,16", "--svg", svg];
    let lookups = ["--lookup", "mica,pointer-chasing"];
    let (rows, said) = rows(&[lookups.as_slice(), &table].concat());
    let rates = params(&rows, "lookups_per_s");
    for lookup in ["mica", "pointer-chasing"] {
        for shape in ["tight", "handler"] {
            for form in ["plain", "c-plain"] {
                let plain = json!({"lookup": lookup, "form": form, "shape": shape});
                assert!(rates.contains(&&plain), "{rates:?}");
            }
            for form in ["gopt", "hand", "c-gopt", "c-hand"] {
                for batch in [1, 16] {
                    let cell = json!({
                        "lookup": lookup, "form": form, "shape": shape, "batch": batch
                    });
                    assert!(rates.contains(&&cell), "{cell} in {rates:?}");
                }
            }
        }
    }
    assert!(values(&rows, "lookups_per_s").all(|rate| rate > 0.0));
    let lines = |row: &&Value| row["params"]["lookup"] == "lines";
    assert_eq!(rows.iter().filter(lines).count(), 2);
    // A look-up reads two lines in MICA, and about a hundred in a chain.
    let of_chain = |row: &&Value| {
        row["metric"] == "lines_per_s" && row["params"]["lookup"] == "pointer-chasing"
    };
    assert!(
        rows.iter()
            .filter(of_chain)
            .all(|row| row["ratio"].as_f64().unwrap() > 0.0)
    );
    assert!(
        rows.iter()
            .any(|row| row["metric"] == "instructions_per_lookup")
    );
    assert!(
        rows.iter()
            .filter(|row| row["metric"] == "lookups_per_s")
            .all(|it| it["valid"] == false)
    );
    assert!(said.contains("may lie in the cache"), "{said}");
    assert!(said.contains("gopt at "), "{said}");
    let svg = std::fs::read_to_string(path).unwrap();
    assert!(
        svg.contains("mica, gopt") && svg.contains("mica, hand"),
        "{svg}"
    );
}

#[test]
fn automata_have_two_forms() {
    let table = ["--table-mib", "8", "--batch", "8"];
    let (rows, _) = rows(&[["--lookup", "aho-corasick"].as_slice(), &table].concat());
    let rates = params(&rows, "lookups_per_s");
    let plain = json!({"lookup": "aho-corasick", "form": "plain", "shape": "tight"});
    let batch = json!({"lookup": "aho-corasick", "form": "batch", "shape": "tight", "batch": 8});
    assert!(
        rates.contains(&&plain) && rates.contains(&&batch),
        "{rates:?}"
    );
}

#[test]
fn rows_of_an_earlier_run_are_shown_and_drawn_without_measuring() {
    let json = temporary("earlier.jsonl");
    let svg = temporary("earlier.svg");
    let [json, svg] = [&json, &svg].map(|path| path.to_str().unwrap());
    let table = ["--table-mib", "8", "--batch", "8", "--runs", "1"];
    let measured = run(&[&["--lookup", "cuckoo", "--json", json], &table[..]].concat());
    assert!(measured.status.success(), "{}", text(&measured.stderr));
    let shown = run(&["--from", json, "--svg", svg]);
    assert!(shown.status.success(), "{}", text(&shown.stderr));
    let tables = [&measured, &shown].map(|out| text(&out.stdout).split("\n\n").next().unwrap());
    let lines = |table: &str| table.lines().filter(|it| it.contains("cuckoo")).count();
    assert_eq!(lines(tables[0]), lines(tables[1]));
    assert!(text(&shown.stdout).contains("2.60 published  cuckoo, tight"));
    let svg = std::fs::read_to_string(svg).unwrap();
    assert!(
        svg.starts_with("<svg") && svg.contains("cuckoo, gopt"),
        "{svg}"
    );
}

#[test]
fn wrong_usage_is_exit_code_2() {
    for args in [
        ["--batch", "0"].as_slice(),
        &["--batch", "8,65"],
        &["--lookup", "phone-book"],
        &["--shape", "round"],
        &["--table-mib", "0"],
        &["--runs", "0"],
        &["--from", "rows.jsonl", "--runs", "3"],
        &["--nonsense"],
    ] {
        assert_eq!(run(args).status.code(), Some(2), "{args:?}");
    }
}

#[test]
fn an_impossible_command_exits_with_1_before_anything_is_measured() {
    for (args, reason) in [
        (["--table-mib", "1048576"], "MiB are available"),
        (["--json", "/proc/none/rows"], "cannot make /proc/none/rows"),
        (["--from", "/proc/none/rows"], "cannot read /proc/none/rows"),
    ] {
        let begin = Instant::now();
        let out = run(&args);
        assert_eq!(out.status.code(), Some(1), "{args:?}");
        assert!(text(&out.stderr).contains(reason), "{}", text(&out.stderr));
        assert!(begin.elapsed() < Duration::from_secs(10));
    }
}

#[test]
fn help_has_examples_and_no_roles() {
    let out = run(&["--help"]);
    let help = text(&out.stdout);
    assert!(out.status.success() && help.contains("Examples:"), "{help}");
    assert!(!help.contains("__role"), "the roles are not an interface");
}

/// Waits until a process has a child: then it measures.
fn wait_for_child(id: &str) {
    let children = Path::new("/proc")
        .join(id)
        .join("task")
        .join(id)
        .join("children");
    let deadline = Instant::now() + Duration::from_secs(20);
    while std::fs::read_to_string(&children).unwrap().is_empty() {
        assert!(Instant::now() < deadline, "no measurement has begun");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn ctrl_c_stops_with_exit_code_130_and_shows_the_machine() {
    for name in ["-INT", "-TERM"] {
        let args = ["--table-mib", "64", "--runs", "1000", "--lookup", "cuckoo"];
        let parent = bench(&args).spawn().unwrap();
        let id = parent.id().to_string();
        wait_for_child(&id);
        let killed = Command::new("kill").args([name, &id]).status().unwrap();
        assert!(killed.success());
        let begin = Instant::now();
        let out = parent.wait_with_output().unwrap();
        assert_eq!(out.status.code(), Some(130), "{}", text(&out.stderr));
        assert!(begin.elapsed() < Duration::from_secs(5));
        assert!(text(&out.stdout).contains("machine: "), "the rest is shown");
    }
}
