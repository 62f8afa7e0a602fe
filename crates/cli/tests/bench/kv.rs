//! The rows of the experiments with the key-value service, with small tables.

use serde_json::{Value, json};

use super::experiments::{params, rows, values};

/// Rows of an experiment with tables of 1 MiB of items.
fn small(args: &[&str]) -> (Vec<Value>, String) {
    rows(&[args, &["--items-mib", "1"]].concat())
}

#[test]
fn the_table_is_measured_against_random_lines() {
    let (rows, said) = small(&["store", "--only", "batch=1,32", "--seconds", "1"]);
    let mut wanted = Vec::new();
    for mode in ["store", "cache"] {
        for popularity in ["uniform", "zipf"] {
            for gets in [100, 95, 50] {
                wanted.extend([1, 32].map(|batch| {
                    json!({
                        "mode": mode, "popularity": popularity, "gets": gets, "batch": batch,
                        "items_mib": 1
                    })
                }));
            }
        }
    }
    assert_eq!(
        params(&rows, "none", "ops_per_s"),
        wanted.iter().collect::<Vec<_>>()
    );
    for row in &rows {
        assert_eq!(row["baseline_name"], "two random lines", "{row}");
        assert!(row["ratio"].as_f64().unwrap() > 0.0, "{row}");
    }
    assert_eq!(said.matches("/ single: ").count(), 12, "{said}");
}

#[test]
fn the_memory_of_tables_is_counted_against_memcached() {
    // Tables of 16 MiB, and servers with -m 8 and -m 16.
    let (rows, said) = rows(&["store-memory", "--items-mib", "16"]);
    let is_installed = !said.contains("memcached is not installed");
    let of = |metric: &str| -> Vec<&Value> {
        rows.iter().filter(|row| row["metric"] == metric).collect()
    };
    let number = |row: &Value, name: &str| row[name].as_f64().unwrap();
    let scans: Vec<&Value> = of("hit_ratio")
        .into_iter()
        .map(|row| &row["params"]["scans"])
        .collect();
    assert_eq!(scans, [0, 20]);
    for row in of("hit_ratio") {
        // A trace that always hits or never hits shows nothing about the cache.
        assert!((0.3..0.95).contains(&number(row, "median")), "{row}");
        assert_eq!(row["baseline"].is_null(), !is_installed, "{row}");
        // A row is valid if the server took no more memory than memcached. With tables this small,
        // an unoptimized binary alone takes more.
        assert!(row["valid"].is_boolean(), "{row}");
    }
    for row in of("resident_mib") {
        let memory = row["params"]["memory_mib"].as_f64().unwrap();
        assert!(number(row, "median") > 0.7 * memory, "{row}");
    }
    for metric in [
        "region_bytes_worst",
        "region_bytes_grown",
        "region_bytes_rewritten",
    ] {
        let found = of(metric);
        assert_eq!(found.len(), 1, "{metric}");
        // Key, value and header alone take 64.
        assert!(
            (64.0..=96.0).contains(&number(found[0], "median")),
            "{}",
            found[0]
        );
    }
    assert!(
        number(of("lost_percent")[0], "median") <= 0.1,
        "{:?}",
        of("lost_percent")
    );
}

#[test]
fn the_service_is_measured_against_echoes() {
    let (rows, said) = small(&["kv", "--transport", "shm", "--seconds", "4"]);
    let closed = params(&rows, "shm", "ops_per_s");
    let mixes = closed.iter().filter(|it| it["value"] == 32).count();
    assert_eq!(
        mixes, 8,
        "two popularities, three mixes, one without batches, and one of the lengths"
    );
    let mut lengths: Vec<u64> = closed
        .iter()
        .map(|it| it["value"].as_u64().unwrap())
        .collect();
    lengths.dedup();
    assert_eq!(lengths, [32, 4, 8, 16, 32, 64, 128, 256, 512, 1024]);
    assert!(values(&rows, "ops_per_s").all(|rate| rate > 0.0));
    assert!(values(&rows, "bound_ratio").all(|ratio| ratio > 0.0));
    for metric in ["latency_p50", "latency_p99", "latency_mean"] {
        let loads = params(&rows, "shm", metric);
        let loads: Vec<u64> = loads
            .iter()
            .map(|it| it["load"].as_u64().unwrap())
            .collect();
        assert_eq!(loads, [10, 30, 50, 70, 90]);
        assert!(values(&rows, metric).all(|ns| ns > 0.0));
    }
    let alone = ["p999_over_echo", "echo_p999_beside"];
    let is_time =
        |row: &&Value| row["unit"] == "ns" && !alone.iter().any(|it| row["metric"] == *it);
    for row in rows.iter().filter(is_time) {
        let name = match row["params"]["beside"].is_null() {
            true => "echoes at this rate",
            false => "echoes without other work",
        };
        assert_eq!(row["baseline_name"], name, "{row}");
    }
    assert!(said.contains("with batches / without: "), "{said}");
}

#[test]
fn the_service_is_measured_over_udp() {
    let (rows, _) = small(&[
        "kv",
        "--transport",
        "udp",
        "--only",
        "value=64",
        "--seconds",
        "1",
    ]);
    let found = params(&rows, "udp", "bound_ratio");
    let usual = json!({
        "popularity": "uniform", "gets": 95, "value": 64, "batched": true, "inflight": 60,
        "items_mib": 1
    });
    assert_eq!(found, [&usual]);
}

#[test]
fn memcacheds_clients_are_measured_against_memcached() {
    let (rows, said) = small(&["memcached", "--seconds", "3"]);
    let ways = [
        ("single", 1),
        ("single", 16),
        ("pipelined", 4),
        ("many_keys", 4),
    ];
    let of = |client: &str, (way, connections): (&str, u32)| {
        let mut params = json!({"client": client, "way": way, "items_mib": 1});
        params["connections"] = connections.into();
        params
    };
    let text = ways.map(|way| of("text", way));
    for metric in [
        "gets_per_s",
        "gets_per_cpu_s",
        "rtt_p50",
        "generator_percent",
    ] {
        let found = params(&rows, "tcp", metric);
        assert_eq!(found, text.iter().collect::<Vec<_>>(), "{metric}");
    }
    // These native clients have as many gets in flight as the text clients of the same `way`.
    let ways = [
        ("single", 1, 1),
        ("single", 16, 1),
        ("single", 16, 16),
        ("pipelined", 1, 100),
        ("many_keys", 1, 1),
    ];
    for transport in ["auto", "udp"] {
        let found = params(&rows, transport, "gets_per_s");
        for (way, connections, batch) in ways {
            let mut native = of("native", (way, connections));
            native["batch"] = batch.into();
            assert!(found.contains(&&native), "{native}: {found:?}");
        }
    }
    assert!(values(&rows, "gets_per_s").all(|rate| rate > 0.0));
    let is_installed = !said.contains("memcached is not installed");
    // A crowd of idle connections is compared with the same client without the front end.
    let is_theirs = |row: &&Value| row["params"]["idle_connections"].is_null();
    for row in rows
        .iter()
        .filter(|row| row["unit"] != "%")
        .filter(is_theirs)
    {
        assert_eq!(row["baseline"].is_null(), !is_installed, "{row}");
        let theirs = ["memcached over TCP", "memcaslap against memcached"];
        let is_theirs = theirs.iter().any(|name| row["baseline_name"] == *name);
        assert_eq!(is_theirs, is_installed, "{row}");
        assert!(!row["valid"].as_bool().unwrap() || row["median"].as_f64().unwrap() > 0.0);
    }
}

#[test]
fn without_memcached_there_is_no_baseline_and_a_note() {
    let out = super::dunlin(&[
        "bench",
        "memcached",
        "--items-mib",
        "1",
        "--only",
        "way=single",
        "--only",
        "connections=1",
        "--transport",
        "auto",
        "--seconds",
        "0.5",
        "--runs",
        "1",
        "--json",
        "-",
    ])
    .env("PATH", "/nowhere")
    .output()
    .unwrap();
    let said = super::text(&out.stderr);
    assert!(out.status.success(), "{said}");
    assert!(said.contains("memcached is not installed here"), "{said}");
    for line in super::text(&out.stdout).lines() {
        let row: Value = serde_json::from_str(line).unwrap();
        assert!(row["baseline"].is_null(), "{row}");
    }
}

#[test]
fn tables_have_a_size_only_where_there_are_any() {
    let refused = |args: &[&str], why: &str| {
        let out = super::run(&[&["bench"], args].concat());
        assert_eq!(out.status.code(), Some(2), "{args:?}");
        let said = super::text(&out.stderr);
        assert!(said.contains(why), "{said}");
    };
    let belongs = "--items-mib belongs to store and store-memory and kv and memcached";
    refused(&["latency", "--items-mib", "1"], belongs);
    refused(
        &["store", "--transport", "udp"],
        "store is measured without a transport",
    );
    refused(&["store", "--items-mib", "0"], "0 is not in");
}
