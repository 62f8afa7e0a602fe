//! Experiments over AF_XDP, between namespaces that the command makes and between given ones. They
//! need root; without it, these tests print that and pass, and with `DUNLIN_NO_SKIP=1` they fail.

use dunlin_testkit::network::Network;
use serde_json::Value;

use super::experiments::{params, rows};
use super::{run, text};

/// Whether this process may make namespaces.
fn is_permitted() -> bool {
    Network::new().is_some()
}

/// The names of the baselines, row by row.
fn baselines(rows: &[Value]) -> Vec<&str> {
    rows.iter()
        .map(|row| row["baseline_name"].as_str().unwrap())
        .collect()
}

#[test]
fn every_row_over_xdp_names_mode_and_packing_and_has_a_baseline_of_the_same_link() {
    if !is_permitted() {
        return;
    }
    let over = ["--transport", "xdp,xdp:native", "--seconds", "0.5"];
    let (latency, _) = rows(&[&["latency", "--size", "32"], &over[..]].concat());
    assert_eq!(baselines(&latency), ["raw AF_XDP ping-pong"; 6]);
    for (transport, mode) in [("xdp", "generic"), ("xdp:native", "native")] {
        let shown = params(&latency, transport, "rtt_p50");
        assert_eq!(shown.len(), 1);
        assert_eq!(shown[0]["mode"], mode);
        assert_eq!(shown[0]["packing"], true);
    }
    let one = ["rate", "--only", "batch=16", "--only", "pattern=symmetric"];
    let (rate, _) = rows(&[&one[..], &over[..]].concat());
    for transport in ["xdp", "xdp:native"] {
        let packed = params(&rate, transport, "rpc_per_s");
        let packed: Vec<&Value> = packed.iter().map(|params| &params["packing"]).collect();
        assert_eq!(packed, [true, false]);
    }
    let names = [
        "RPC rate over udp, same link",
        "raw AF_XDP exchange",
        "RPC rate over udp, same link",
        "raw AF_XDP exchange",
    ];
    assert_eq!(baselines(&rate), names);
    let one = [
        "bandwidth",
        "--transport",
        "xdp",
        "--only",
        "size=1048576",
        "--only",
        "inflight=4",
        "--seconds",
        "1",
    ];
    let (bandwidth, _) = rows(&one);
    assert_eq!(bandwidth[0]["baseline_name"], "raw AF_XDP transfer");
    assert_eq!(bandwidth[0]["params"]["mode"], "generic");
    let once = ["--transport", "xdp", "--seconds", "4"];
    // `sessions=0` leaves out the row of the idle server, which has 100 sessions and takes long.
    let idle = ["idle", "--only", "silence_ms=1", "--only", "sessions=0"];
    let (idle, _) = rows(&[&idle[..], &once[..]].concat());
    let woken = idle.iter().find(|row| row["metric"] == "rtt_first");
    let baseline = &woken.unwrap()["baseline_name"];
    assert_eq!(baseline, "raw AF_XDP and poll (after 1 s at most)");
    let (queue, _) = rows(&[&["queue"], &once[..]].concat());
    assert_eq!(baselines(&queue), ["the others while all run"]);
    for (name, only) in [("loss", "loss=0.01"), ("reorder", "percent=10")] {
        let (rows, said) = rows(&[&[name, "--only", only], &once[..]].concat());
        let over_xdp = params(&rows, "xdp", "gbps");
        assert_eq!(over_xdp.len(), 1, "{rows:?}");
        assert_eq!(over_xdp[0]["mode"], "generic");
        // Packets that were lost are sent again, and a note says so.
        let note = format!("note: {name} xdp");
        assert!(name == "reorder" || said.contains(&note), "{said}");
    }
}

#[test]
fn an_experiment_uses_the_ends_that_the_command_names() {
    let Some(network) = Network::new() else {
        return;
    };
    let before = network.left.sent_packets();
    let ends = [&network.left, &network.right].map(|host| host.place("link0"));
    let args = [
        "latency",
        "--size",
        "8",
        "--transport",
        "xdp",
        "--seconds",
        "0.3",
    ];
    let (shown, _) = rows(&[&args[..], &["--ends", &ends[0], &ends[1]]].concat());
    assert_eq!(shown.len(), 3);
    assert!(network.left.sent_packets() > before + 1000);
}

#[test]
fn wrong_ends_and_experiments_without_xdp_are_refused() {
    for (args, said) in [
        (
            &["rate", "--transport", "xdp", "--ends", "a/b", "c/d/::1"][..],
            "NAMESPACE/INTERFACE",
        ),
        (&["rate", "--ends", "a/b/::1"], "2 values required"),
        (
            &["sessions", "--transport", "xdp"],
            "sessions is measured over",
        ),
        (
            &[
                "rate",
                "--transport",
                "xdp",
                "--ends",
                "no-such-place/b/::1",
                "c/d/::2",
            ],
            "no-such-place",
        ),
    ] {
        let out = run(&[&["bench"], args].concat());
        assert!(!out.status.success(), "{args:?}");
        let error = text(&out.stderr);
        assert!(error.contains(said), "{args:?}: {error}");
    }
}
