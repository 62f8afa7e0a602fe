//! Lines that are not rows are refused with their place, and the page describes its content.

use std::path::PathBuf;

use harness::row::Spread;
use serde_json::{Value, json};

use super::*;

/// A row with a spread of 5 % around a median of 400 ns, twice the baseline.
fn sample() -> Row {
    let spread = Spread {
        median: 400.0,
        min: 390.0,
        max: 410.0,
    };
    Row {
        transport: "shm".into(),
        params: serde_json::Map::from_iter([("size".to_owned(), 32.into())]),
        runs: 5,
        ..Row::new("latency", ("rtt_p50", "ns"), spread).against(200.0, "raw")
    }
}

/// A file with these lines, and the result of reading it.
fn read_lines(name: &str, lines: &[&str]) -> (PathBuf, Result<Vec<Row>, String>) {
    let path = std::env::temp_dir().join(format!("dunlin-{}-{name}", std::process::id()));
    std::fs::write(&path, lines.join("\n")).unwrap();
    let read = read::all(std::slice::from_ref(&path)).map_err(|error| format!("{error:#}"));
    std::fs::remove_file(&path).unwrap();
    (path, read)
}

fn good() -> Value {
    serde_json::to_value(sample()).unwrap()
}

fn changed(key: &str, value: Value) -> String {
    let mut row = good();
    row[key] = value;
    row.to_string()
}

#[test]
fn rows_are_read_as_they_were_written() {
    let text = serde_json::to_string(&sample()).unwrap();
    let (_, rows) = read_lines("good", &[&text, "", &text]);
    assert_eq!(rows.unwrap(), [sample(), sample()]);
}

#[test]
fn a_line_that_is_not_a_row_is_refused_with_its_place_and_the_reason() {
    let mut other_version = good();
    other_version["run"]["format"] = 2.into();
    other_version["run"]["dunlin"] = "9.9.9".into();
    let cases = [
        ("# results", "not a JSON object on one line"),
        ("{\"experiment\":", "not a JSON object on one line"),
        ("[1, 2]", "JSON, but not an object"),
        ("{\"scenario\": \"incast\"}", "a run of `dunlin sim`"),
        ("{\"a\": 1}", "so not a row of `dunlin bench`"),
        (&changed("run", Value::Null), "does not say its format"),
        (
            &other_version.to_string(),
            "a row of format 2, written by dunlin 9.9.9",
        ),
        (
            &changed("experiment", "gopt".into()),
            "`gopt bench --from FILE --svg PICTURE` draws them",
        ),
        (
            &changed("experiment", "speed".into()),
            "unknown experiment `speed`; known are raw, latency",
        ),
        (
            &changed("median", "fast".into()),
            "invalid type: string \"fast\"",
        ),
        (
            &changed("min", 1e9.into()),
            "the median is 400 and the spread 1000000000 to 410",
        ),
        (&changed("colour", "red".into()), "unknown field `colour`"),
        (
            &changed("params", json!([1])),
            "not a row of `dunlin bench`",
        ),
    ];
    let row = good().to_string();
    for (line, reason) in cases {
        let (path, read) = read_lines("bad", &[&row, line]);
        let error = read.unwrap_err();
        let place = format!("{}:2: ", path.display());
        assert!(
            error.starts_with(&place) && error.contains(reason),
            "{error}"
        );
    }
}

#[test]
fn a_file_without_rows_or_without_text_is_refused() {
    let (path, read) = read_lines("empty", &["", " "]);
    assert_eq!(
        read.unwrap_err(),
        format!(
            "{}: has no rows; `dunlin bench NAME --json FILE` writes some",
            path.display()
        )
    );
    std::fs::write(&path, b"{}\n\n\xFF\xFE").unwrap();
    let error = read::all(std::slice::from_ref(&path))
        .unwrap_err()
        .to_string();
    std::fs::remove_file(&path).unwrap();
    assert_eq!(
        error,
        format!("{}:3: not text, so not JSON lines", path.display())
    );
    let error = format!(
        "{:#}",
        read::all(&[PathBuf::from("/proc/none")]).unwrap_err()
    );
    assert!(error.starts_with("cannot read /proc/none: "), "{error}");
}

#[test]
fn the_page_says_what_was_measured_where_and_what_was_not() {
    let mut rows = [sample(), sample()];
    rows[0].run.commit = Some("abc1234".to_owned());
    rows[1].run.machine = "an <odd> machine".to_owned();
    rows[1].valid = false;
    let page = page::render(&rows, &["round 2: late".to_owned()]);
    for said in [
        "commit abc1234",
        "an &lt;odd&gt; machine",
        "1 of 2 rows are marked invalid",
        "round trip, median, size 32 B",
        "eRPC, table 2",
        "400 ns",
        "2.00",
        "round 2: late",
        "<li>Incast: <code>dunlin bench incast --json FILE</code></li>",
    ] {
        assert!(page.contains(said), "{said}");
    }
    assert!(!page.contains("<odd>") && !page.contains("id=\"incast\""));
    for outside in [
        "<script", "http://", "https://", "url(", "@import", "<link", "<img",
    ] {
        let found = page.replace("xmlns=\"http://www.w3.org/2000/svg\"", "");
        assert!(!found.contains(outside), "{outside}");
    }
}

#[test]
fn published_figures_have_names_that_people_read() {
    let all = || experiments::ALL.iter().flat_map(|it| it.published);
    for it in all() {
        let label = it.label();
        // Metrics of rows have underscores; so do the names of the factors in `factors`.
        assert!(!label.starts_with(it.metric), "{label}");
    }
    let labels: Vec<String> = all().map(|it| it.label()).collect();
    for label in [
        "data delivered, size 8 MiB, inflight 1",
        "data delivered, loss 10⁻⁷",
    ] {
        assert!(labels.iter().any(|it| it == label), "{labels:?}");
    }
}
