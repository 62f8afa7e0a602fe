//! A line that is not a row of this experiment is refused with its place.

use harness::row::{Row, Spread};

use super::*;

fn good(experiment: &'static str) -> Row {
    let spread = Spread {
        median: 2.0,
        min: 1.0,
        max: 3.0,
    };
    Row::new(experiment, ("lookups_per_s", "1/s"), spread)
}

fn read(name: &str, lines: &[String]) -> (String, anyhow::Result<Vec<Row>>) {
    let path = std::env::temp_dir().join(format!("gopt-read-{}-{name}", std::process::id()));
    std::fs::write(&path, lines.join("\n")).unwrap();
    let rows = all(std::slice::from_ref(&path));
    std::fs::remove_file(&path).unwrap();
    (path.display().to_string(), rows)
}

#[test]
fn rows_are_read_as_they_were_written() {
    let line = serde_json::to_string(&good(EXPERIMENT)).unwrap();
    let (_, rows) = read("good", &[line.clone(), String::new(), line]);
    assert_eq!(rows.unwrap(), [good(EXPERIMENT), good(EXPERIMENT)]);
}

#[test]
fn a_line_that_is_no_row_of_this_experiment_is_refused_with_its_place() {
    let mut future = good(EXPERIMENT);
    future.run.format = 2;
    let cases = [
        ("{}".to_owned(), "not a row of `gopt bench`"),
        (
            serde_json::to_string(&good("latency")).unwrap(),
            "a row of `latency`",
        ),
        (
            serde_json::to_string(&future).unwrap(),
            "a row of format 2; this gopt reads format 1",
        ),
    ];
    for (line, reason) in cases {
        let (path, rows) = read("bad", &[String::new(), line]);
        let error = format!("{:#}", rows.unwrap_err());
        assert!(error.starts_with(&format!("{path}:2: ")), "{error}");
        assert!(error.contains(reason), "{error}");
    }
    let (_, rows) = read("empty", &[]);
    let error = rows.unwrap_err().to_string();
    assert!(error.contains("has no rows"), "{error}");
}
