//! The rows of the experiments with the replicated store, the ordered index and the sequencer.

use dunlin_testkit::skip;
use serde_json::{Value, json};

use super::experiments::{params, rows, values};

/// The rows of a metric.
fn of<'a>(rows: &'a [Value], metric: &str) -> Vec<&'a Value> {
    rows.iter().filter(|row| row["metric"] == metric).collect()
}

#[test]
fn replicas_are_measured_in_memory_and_on_a_disk() {
    let only = [
        "--only",
        "kills=0",
        "--only",
        "fabric=none",
        "--only",
        "minutes=0",
        "--only",
        "snapshot_mib=0",
    ];
    let args = ["replica", "--transport", "shm", "--seconds", "2"];
    let (rows, said) = rows(&[&args[..], &only].concat());
    let one = json!({ "replicas": 3, "outstanding": 1 });
    for metric in [
        "put_p50",
        "leader_p50",
        "leader_p99",
        "echo_p50",
        "raft_alone_p50",
        "round_trips",
    ] {
        assert_eq!(params(&rows, "shm", metric), [&one], "{said}");
        assert!(values(&rows, metric).all(|value| value > 0.0), "{metric}");
    }
    assert_eq!(
        of(&rows, "put_p50")[0]["baseline_name"],
        "two echoes and Raft alone"
    );
    let puts = of(&rows, "puts_per_s");
    let [memory, disk] = puts[..] else {
        panic!("{rows:?}");
    };
    assert_eq!(
        memory["params"],
        json!({ "replicas": 3, "outstanding": 32 })
    );
    assert_eq!(
        (&disk["params"]["replicas"], &disk["params"]["outstanding"]),
        (&json!(3), &json!(128))
    );
    assert!(disk["params"]["disk"].is_string(), "{disk}");
    for metric in [
        "bound_ratio",
        "puts_per_sync",
        "sync_mean",
        "writer_syncs_per_s",
    ] {
        let value = values(&rows, metric).next();
        assert!(
            value.is_some_and(|value| value > 0.0),
            "{metric}: {value:?}"
        );
    }
    assert_eq!(values(&rows, "elections").count(), 2);
    etcd_is_the_baseline_with_its_version([memory, disk], &said);
}

fn etcd_is_the_baseline_with_its_version(rows: [&Value; 2], said: &str) {
    let names = rows.map(|row| &row["baseline_name"]);
    match said.contains("etcd is not installed") {
        true => {
            assert_eq!(names, [&Value::Null; 2]);
            skip("there is no etcd");
        }
        false => {
            // A number is the version.
            let kind = |name: &Value| {
                let name = name.as_str().unwrap().to_owned();
                let plain = name.replace(|it: char| it.is_ascii_digit() || it == '.', "");
                assert_ne!(plain, name, "no version");
                plain
            };
            assert_eq!(
                names.map(kind),
                [
                    "etcd , three members in memory",
                    "etcd , three members on a disk"
                ]
            );
        }
    }
}

/// In a build for tests, these cases are short.
#[test]
fn killed_leaders_and_a_calm_load_are_measured() {
    let only = ["--only", "kills=0,2", "--only", "minutes=0,0.05"];
    let more = ["--only", "outstanding=32", "--only", "snapshot_mib=0"];
    let only = [only, more].concat();
    let args = ["replica", "--transport", "shm", "--seconds", "20"];
    let (rows, said) = rows(&[&args[..], &only].concat());
    let killed = of(&rows, "failover_p50");
    assert_eq!(killed.len(), 1, "{said}");
    assert_eq!(killed[0]["params"], json!({ "replicas": 3, "kills": 2 }));
    assert_eq!(killed[0]["baseline_name"], "the shortest election time-out");
    let worst = values(&rows, "failover_worst").next();
    let least = values(&rows, "failover_p50").next();
    assert!(least > Some(0.0) && worst >= least, "{least:?} {worst:?}");
    let is_calm = |row: &&Value| row["params"]["minutes"] == 0.05;
    let calm: Vec<&Value> = rows.iter().filter(is_calm).collect();
    let metrics: Vec<&Value> = calm.iter().map(|row| &row["metric"]).collect();
    assert_eq!(metrics, ["elections", "puts_per_s", "put_p99"], "{said}");
    assert!(calm[1]["median"].as_f64() > Some(0.0), "{said}");
}

/// In a build for tests, the snapshot is small.
#[test]
fn puts_are_measured_during_a_snapshot_and_without_one() {
    let only = ["--only", "kills=0", "--only", "outstanding=0"];
    let args = ["replica", "--transport", "shm", "--seconds", "5"];
    let (rows, said) = rows(&[&args[..], &only].concat());
    let metrics: Vec<&Value> = rows.iter().map(|row| &row["metric"]).collect();
    let names = ["put_p50", "put_p999", "put_longest"];
    let alone = ["puts_over_ms", "snapshot_time"];
    assert_eq!(metrics, [&names[..], &alone].concat(), "{said}");
    for name in names {
        let row = of(&rows, name)[0];
        assert_eq!(row["params"], json!({ "replicas": 3, "snapshot_mib": 8 }));
        assert_eq!(row["baseline_name"], "puts without a snapshot");
        assert!(row["ratio"].as_f64() > Some(0.0), "{row}");
    }
    assert!(
        values(&rows, "snapshot_time").all(|time| time > 0.0),
        "{said}"
    );
}

#[test]
fn the_ordered_index_is_measured_against_echoes_and_its_tree() {
    let args = ["index", "--transport", "shm", "--seconds", "2"];
    let (rows, said) = rows(&[&args[..], &["--only", "threads=0"]].concat());
    for metric in ["bound_ratio", "tree_per_s", "scan_p50", "get_p99"] {
        assert!(values(&rows, metric).count() > 0, "{metric}: {said}");
        assert!(
            values(&rows, metric).all(|value| value > 0.0),
            "{metric}: {said}"
        );
    }
    let scans = params(&rows, "shm", "gets_per_s");
    let scans: Vec<&Value> = scans.iter().map(|it| &it["scans"]).collect();
    assert_eq!(scans, ["none", "workers", "dispatch"]);
    assert!(
        of(&rows, "gets_per_s")
            .iter()
            .all(|row| row["baseline_name"] == "echoes")
    );
    assert_eq!(of(&rows, "bound_ratio").len(), 1);
}

#[test]
fn the_sequencer_is_measured_against_echoes() {
    let (rows, _) = rows(&["sequencer", "--transport", "shm", "--seconds", "1"]);
    let cases = params(&rows, "shm", "numbers_per_s");
    let cases: Vec<(u64, u64)> = cases
        .iter()
        .map(|it| {
            (
                it["clients"].as_u64().unwrap(),
                it["batch"].as_u64().unwrap(),
            )
        })
        .collect();
    let wanted = [
        (1, 16),
        (2, 16),
        (4, 16),
        (8, 16),
        (1, 1),
        (1, 4),
        (1, 32),
        (1, 16),
    ];
    assert_eq!(cases, wanted);
    assert!(rows.iter().all(|row| row["baseline_name"] == "echoes"));
    assert!(values(&rows, "numbers_per_s").all(|rate| rate > 0.0));
}
