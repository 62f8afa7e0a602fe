//! `dunlin report` as a user runs it, and its page in a browser: the page fetches nothing, every
//! chart is visible, and no text leaves its place, on wide and narrow, light and dark screens.

use std::path::{Path, PathBuf};
use std::process::Command;

use dunlin_testkit::skip;
use serde_json::{Value, json};

use super::command::{signal, wait_until_it_watches};
use super::turns::turn;
use super::{dunlin, run, text};

const RESULTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/results");
const CHECKS: &str = include_str!("browser.js");
/// Programs that show pages without a screen.
const BROWSERS: [&str; 4] = [
    "chromium-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome",
];
/// Experiments in the README's picture.
const SHOWN: [&str; 6] = ["latency", "rate", "sessions", "bandwidth", "loss", "incast"];
const LIGHT: &str = "--blink-settings=preferredColorScheme=1";
const DARK: &str = "--blink-settings=preferredColorScheme=0";

fn temporary(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

/// The files of recorded rows.
fn recorded() -> Vec<String> {
    let files = std::fs::read_dir(RESULTS).unwrap();
    let paths = files.map(|file| file.unwrap().path());
    let is_rows = |path: &PathBuf| path.extension().is_some_and(|it| it == "jsonl");
    let mut paths: Vec<String> = paths
        .filter(is_rows)
        .map(|path| path.to_str().unwrap().to_owned())
        .collect();
    paths.sort();
    assert!(!paths.is_empty());
    paths
}

/// Rows for the experiments without recorded rows, so that their charts are checked, too: with all
/// values of the parameters that the charts know; some rows are invalid.
fn made_up() -> String {
    let mut rows = Vec::new();
    let mut add =
        |experiment: &str, transport: &str, params: Value, (metric, unit): (&str, &str)| {
            let median = 1_000.0 * (1.0 + f64::from(u32::try_from(rows.len() * 7 % 50).unwrap()));
            rows.push(json!({
                "experiment": experiment, "transport": transport, "params": params,
                "metric": metric, "unit": unit, "median": median, "min": median * 0.8,
                "max": median * 1.7, "runs": 5, "baseline": 2_000.0, "baseline_name": "made up",
                "ratio": median / 2_000.0, "valid": rows.len() % 5 != 0,
                "run": {"format": 1, "dunlin": "0.1.0", "commit": "abc1234+", "build": "debug",
                        "machine": "one that was made up, with a name that does not end soon"},
            }));
        };
    for transport in ["shm", "auto", "udp", "sim"] {
        for large in ["request", "response"] {
            for metric in ["rtt_p50", "rtt_p99"] {
                add("mixed", transport, json!({"large": large}), (metric, "ns"));
            }
        }
        for face in ["poll", "async", "typed"] {
            add(
                "faces",
                transport,
                json!({"face": face, "inflight": 60}),
                ("rpc_per_s", "1/s"),
            );
        }
    }
    for transport in ["shm", "udp"] {
        for (size, sessions, inflight, echoed) in [
            (65_536, 1, 8, false),
            (1 << 20, 1, 8, false),
            (65_536, 8, 60, true),
        ] {
            for metric in [
                ("gbps", "Gbps"),
                ("p99", "ns"),
                ("mean", "ns"),
                ("resent", "packets"),
            ] {
                let params = json!({
                    "size": size, "sessions": sessions, "inflight": inflight, "echoed": echoed
                });
                add("parallel", transport, params, metric);
            }
        }
    }
    for cc in ["none", "timely", "dcqcn", "swift"] {
        let params = json!({"degree": 100, "cc": cc});
        add("incast_background", "sim", params, ("latency_p99_us", "us"));
    }
    for endpoints in [1, 2, 5, 10] {
        for metric in ["latency_p50_us", "latency_p99_us", "latency_p9999_us"] {
            add(
                "cluster",
                "sim",
                json!({"endpoints": endpoints}),
                (metric, "us"),
            );
        }
        let metric = ("rpc_per_s_per_host", "1/s");
        add("cluster", "sim", json!({"endpoints": endpoints}), metric);
    }
    add_services(&mut add);
    rows.iter().map(|row| format!("{row}\n")).collect()
}

/// Adds a row: experiment, transport, parameters, metric with its unit.
type Add<'a> = &'a mut dyn FnMut(&str, &str, Value, (&str, &str));

/// Adds rows of the tables of the key-value service.
fn add_tables(add: Add<'_>) {
    for mode in ["store", "cache"] {
        for (popularity, gets) in [("uniform", 100), ("uniform", 50), ("zipf", 95)] {
            for batch in [1, 2, 4, 8, 16, 32] {
                let params = json!({
                    "mode": mode, "popularity": popularity, "gets": gets, "batch": batch,
                    "items_mib": 1024
                });
                add("store", "none", params, ("ops_per_s", "1/s"));
            }
        }
    }
    for scans in [0, 20] {
        let params = json!({ "what": "hits", "memory_mib": 16, "scans": scans });
        add("store_memory", "none", params, ("hit_ratio", ""));
    }
    for memory_mib in [8, 16, 64] {
        let params = json!({ "what": "fill", "memory_mib": memory_mib });
        add("store_memory", "none", params, ("resident_mib", "MiB"));
    }
}

/// Adds rows of the experiments with services.
fn add_services(add: Add<'_>) {
    add_tables(add);
    for transport in ["shm", "udp"] {
        for value in [4, 8, 16, 32, 64, 128, 256, 512, 1024] {
            let params = json!({
                "popularity": "uniform", "gets": 95, "value": value, "items_mib": 128,
                "batched": true, "inflight": 60
            });
            add("kv", transport, params, ("ops_per_s", "1/s"));
        }
        for load in [10, 30, 50, 70, 90] {
            let params = json!({
                "popularity": "uniform", "gets": 95, "value": 32, "items_mib": 1024, "load": load
            });
            for metric in ["latency_p50", "latency_p99", "latency_mean"] {
                add("kv", transport, params.clone(), (metric, "ns"));
            }
        }
    }
    for (transport, client) in [("tcp", "text"), ("auto", "native"), ("udp", "native")] {
        let batches = if client == "text" { 4 } else { 1 };
        for (way, connections) in [
            ("single", 1),
            ("single", 16),
            ("pipelined", batches),
            ("many_keys", batches),
        ] {
            let params = json!({
                "client": client, "way": way, "connections": connections, "items_mib": 128
            });
            add(
                "memcached",
                transport,
                params.clone(),
                ("gets_per_s", "1/s"),
            );
            if client == "text" {
                add("memcached", transport, params, ("gets_per_cpu_s", "1/s"));
            }
        }
    }
    for transport in ["shm", "udp"] {
        for (clients, speculates) in [(1, false), (2, false), (4, false), (8, false), (1, true)] {
            let params = json!({
                "clients": clients, "batch": 16, "speculates": speculates, "inflight": 60
            });
            add("sequencer", transport, params, ("numbers_per_s", "1/s"));
        }
        add_replicas_and_index(transport, add);
    }
    for transport in ["xdp", "xdp:native"] {
        add("queue", transport, json!({}), ("others_per_s", "1/s"));
    }
}

fn add_replicas_and_index(transport: &str, add: Add<'_>) {
    for (outstanding, metric) in [(1, ("put_p50", "ns")), (32, ("puts_per_s", "1/s"))] {
        let params = json!({ "replicas": 3, "outstanding": outstanding });
        add("replica", transport, params, metric);
    }
    for scans in ["workers", "dispatch"] {
        let params = json!({ "scans": scans, "inflight": 60 });
        add("index", transport, params.clone(), ("gets_per_s", "1/s"));
        add("index", transport, params, ("get_p99", "ns"));
    }
}

/// Runs `dunlin report` on files.
fn report(files: &[String], others: &[&str]) -> std::process::Output {
    let files = files.iter().map(String::as_str);
    let args: Vec<&str> = ["report", "--from"].into_iter().chain(files).collect();
    run(&[&args[..], others].concat())
}

/// Runs the page's checks in a browser, and returns their findings; `None` if there is no browser.
fn look_at(page: &str, name: &str, width: u32, scheme: &str) -> Option<Value> {
    let path = temporary(name);
    let checked = page.replacen("<head>", &format!("<head>\n<script>{CHECKS}</script>"), 1);
    std::fs::write(&path, checked).unwrap();
    let browser = BROWSERS
        .iter()
        .find(|name| Command::new(name).arg("--version").output().is_ok());
    let Some(browser) = browser else {
        skip("there is no Chromium");
        return None;
    };
    let out = Command::new(browser)
        // The browser's sandbox does not work for root, and the page is our own.
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"])
        .args([scheme, &format!("--window-size={width},900")])
        .arg(format!("file://{}", path.display()))
        .output()
        .unwrap();
    let dom = text(&out.stdout);
    let verdict = dom.split("<pre id=\"verdict\">").nth(1);
    let verdict = verdict.unwrap_or_else(|| panic!("the page did not load: {}", text(&out.stderr)));
    let verdict = verdict.split("</pre>").next().unwrap_or_default();
    let plain = verdict
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&amp;", "&");
    Some(serde_json::from_str(&plain).unwrap())
}

#[test]
fn a_browser_shows_every_chart_of_the_page_and_fetches_nothing() {
    let (path, rows) = (temporary("report.html"), temporary("made-up.jsonl"));
    std::fs::write(&rows, made_up()).unwrap();
    let mut files = recorded();
    files.push(rows.to_str().unwrap().to_owned());
    let out = report(&files, &["-o", path.to_str().unwrap()]);
    assert!(out.status.success(), "{}", text(&out.stderr));
    let page = std::fs::read_to_string(path).unwrap();
    let charts = page.matches("<svg class=\"chart\"").count();
    assert!(charts >= 24, "{charts} charts");
    assert!(!page.contains("Not measured"), "every section is looked at");
    for (name, width, scheme) in [
        ("wide-light.html", 1280, LIGHT),
        ("narrow-dark.html", 400, DARK),
    ] {
        let Some(verdict) = look_at(&page, name, width, scheme) else {
            return;
        };
        assert_eq!(verdict["charts"], charts, "{name}");
        assert_eq!(
            verdict["wrong"],
            Value::Array(Vec::new()),
            "{name}: {verdict:#}"
        );
    }
}

#[test]
fn the_checks_see_what_is_wrong_with_a_page() {
    let page = "<!doctype html><html><head><style>p { width: 5em; white-space: nowrap; } \
                h2 { color: #ccc; }</style></head><body>\
                <img src=\"https://example.invalid/x.png\"><h2>pale</h2>\
                <p>much longer than its five letters</p>\
                <svg class=\"chart\" viewBox=\"0 0 200 100\" aria-label=\"one\">\
                <text x=\"150\" y=\"20\">over the edge</text>\
                <text x=\"5\" y=\"50\">on the</text><text x=\"10\" y=\"52\">other</text></svg>\
                <svg class=\"chart\" style=\"display: none\" viewBox=\"0 0 9 9\" \
                aria-label=\"two\"><rect class=\"bar\"/></svg>\
                <script>throw new Error('broken')</script></body></html>";
    let Some(verdict) = look_at(page, "wrong.html", 800, LIGHT) else {
        return;
    };
    let wrong = verdict["wrong"].as_array().unwrap();
    for expected in [
        "error: Uncaught Error: broken",
        "request: https://example.invalid/x.png",
        "not seen: two",
        "empty: one",
        "text leaves its chart: one",
        "texts overlap: one",
        "text leaves its box: P",
        "hard to read: H2",
    ] {
        let is_there = |it: &Value| it.as_str().is_some_and(|it| it.starts_with(expected));
        assert!(wrong.iter().any(is_there), "{expected}: {verdict:#}");
    }
}

#[test]
fn the_picture_of_the_readme_is_what_its_command_draws() {
    let path = temporary("results.svg");
    let out = report(
        &SHOWN.map(|name| format!("{RESULTS}/{name}.jsonl")),
        &["--picture", path.to_str().unwrap()],
    );
    assert!(out.status.success(), "{}", text(&out.stderr));
    let drawn = std::fs::read_to_string(path).unwrap();
    let shown = std::fs::read_to_string(format!("{RESULTS}.svg")).unwrap();
    assert!(
        drawn == shown,
        "draw it anew with the command that stands below it in the README"
    );
}

#[test]
fn the_picture_of_the_readme_has_only_valid_rows() {
    for name in SHOWN {
        let rows = std::fs::read_to_string(format!("{RESULTS}/{name}.jsonl")).unwrap();
        for row in rows.lines() {
            let value: Value = serde_json::from_str(row).unwrap();
            assert_eq!(value["valid"], Value::Bool(true), "{name}: {row}");
        }
    }
}

#[test]
fn rows_that_cannot_be_read_are_exit_code_1_and_leave_no_page() {
    let (rows, page) = (temporary("bad.jsonl"), temporary("bad.html"));
    std::fs::write(&rows, "{\"experiment\": 7}\n").unwrap();
    let from = [rows.to_str().unwrap().to_owned()];
    let out = report(&from, &["-o", page.to_str().unwrap()]);
    assert_eq!(out.status.code(), Some(1));
    let said = text(&out.stderr);
    assert!(
        said.starts_with(&format!("dunlin: {}:1: ", rows.display())),
        "{said}"
    );
    assert!(!page.exists());
    let out = report(&recorded()[..1], &["-o", "/proc/none/page.html"]);
    assert_eq!(out.status.code(), Some(1));
    assert!(text(&out.stderr).contains("cannot make /proc/none/page.html"));
    for args in [&["report"][..], &["report", "--from"], &["report", "-o"]] {
        assert_eq!(run(args).status.code(), Some(2), "{args:?}");
    }
}

#[test]
fn without_rows_it_measures_and_says_what_there_was_no_time_for() {
    let path = temporary("measured.html");
    let out = run(&["report", "--seconds", "0.1", "-o", path.to_str().unwrap()]);
    assert!(out.status.success(), "{}", text(&out.stderr));
    let page = std::fs::read_to_string(path).unwrap();
    assert!(
        page.contains("Not measured") && page.contains("left out, more --seconds"),
        "{page}"
    );
}

#[test]
fn a_page_that_ctrl_c_interrupted_mentions_it() {
    let _turn = turn();
    let path = temporary("interrupted.html");
    let args = ["report", "--seconds", "600", "-o", path.to_str().unwrap()];
    let _ = std::fs::remove_file(&path);
    let child = dunlin(&args).spawn().unwrap();
    // The command writes the page before it measures anything, and watches signals right after
    // that.
    wait_until_it_watches(child.id());
    assert!(path.exists(), "the page is there before the first row");
    signal(child.id(), "-INT");
    let out = child.wait_with_output().unwrap();
    assert_eq!(out.status.code(), Some(130), "{}", text(&out.stderr));
    let page = std::fs::read_to_string(path).unwrap();
    assert!(
        page.contains("the run ended early: ") && page.ends_with("</html>\n"),
        "{page}"
    );
}
