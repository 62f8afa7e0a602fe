//! Echoes between two processes over `dpdk`, by a device of memif in each. They need DPDK and
//! `libdunlin_dpdk.so`; continuous integration builds that in the step that runs them.

use std::time::Instant;

use dunlin_testkit::network::Network;

use super::{LIMIT, Running, dunlin, objects, run, text};

/// A device for either side of the link with this name, whose addresses are 10.85.0.1 and .2.
pub(super) fn device(link: &str, number: u8) -> String {
    let role = if number == 1 { "server" } else { "client" };
    let socket = format!("/dunlin-{}-{link}", std::process::id());
    format!("dpdk:net_memif0,role={role},socket={socket};ip=10.85.0.{number}/24;--no-huge -m 128")
}

/// The option without which an endpoint sends nothing to an address outside of the control plane's
/// network.
pub(super) const ALLOW: [&str; 2] = ["--set", "nexus.allow_peers=10.85.0.0/24"];

fn serve(link: &str) -> (Running, String) {
    Running::server(&[&["--transport", &device(link, 1)], &ALLOW[..]].concat())
}

#[test]
#[ignore = "needs DPDK"]
fn processes_echo_over_memif_awake_and_asleep() {
    let (server, address) = serve("echo");
    for (size, idle) in [("32", "spin"), ("100000", "spin"), ("32", "0")] {
        let device = device("echo", 2);
        let args = ["ping", "-c", "20", "-i", "10ms", "-s", size, "--json"];
        let flags = ["--idle", idle, "--transport", &device, &address];
        let out = run(&[&args[..], &ALLOW, &flags].concat());
        let said = text(&out.stderr);
        assert!(out.status.success(), "{size} bytes, {idle}: {said}");
        let summary = objects(&out.stdout).pop().unwrap();
        assert_eq!(summary["answered"], 20, "{summary}");
    }
    let stats = run(&["stats", &server.child.id().to_string(), "--json"]);
    assert!(stats.status.success(), "{}", text(&stats.stderr));
    let endpoint = &objects(&stats.stdout)[0]["endpoints"][0];
    let counters = &endpoint["transport_counters"];
    assert!(counters["rx_neighbours"].as_u64() > Some(0), "{endpoint}");
    assert_eq!(counters["rx_wrong_sum"], 0, "{endpoint}");
    drop(server);
}

#[test]
#[ignore = "needs DPDK"]
fn large_messages_pass_between_processes_over_the_driver_of_af_xdp() {
    let Some(network) = Network::new() else {
        return;
    };
    let [left, right] = [&network.left, &network.right];
    network.link_further("10.80.0");
    for host in [left, right] {
        host.ip("addr flush dev link0").unwrap();
    }
    let device = |number: u8| {
        format!("dpdk:net_af_xdp0,iface=link0;ip=10.85.0.{number}/24;--no-huge -m 256")
    };
    let [near, far] = [1, 2].map(device);
    let serve = ["echo-server", "10.80.0.2:0", "--json", "--transport", &far];
    let mut server = right.run(|| Running::start(&[&serve[..], &ALLOW].concat()));
    let address = server.line()["listening"].as_str().unwrap().to_owned();
    let ping = ["ping", "-c", "10", "-s", "1000000", "-i", "10ms", "-d", "5"];
    let over = ["--json", "--transport", &near, &address];
    let args = [&ping[..], &ALLOW, &over].concat();
    // The driver has no interrupts. If a busy machine keeps one end waiting for longer than the
    // other looks for packets, both sleep between packets, congestion control takes the wait for a
    // queue, and some calls miss their deadline. Ends that spin had all answers in six such runs.
    // With gaps in the pool, at least three quarters of the calls of every run missed it.
    let mut summaries = Vec::new();
    for _ in 0..5 {
        let out = left.run(|| run(&args));
        let summary = objects(&out.stdout).pop().unwrap();
        if summary["answered"] == 10 {
            return;
        }
        summaries.push(summary);
    }
    panic!("no run has had all answers: {summaries:?}");
}

#[test]
#[ignore = "needs DPDK"]
fn auto_over_dpdk_serves_processes_of_this_host_and_peers_at_the_link() {
    let at_link = format!("auto+{}", device("auto", 1));
    let args = [&["--transport", &at_link][..], &ALLOW].concat();
    let (_server, address) = Running::server(&args);
    let far = device("auto", 2);
    for flags in [&[][..], &["--transport", "shm"], &["--transport", &far]] {
        let args = ["ping", "-c", "5", "-i", "10ms", "--json", &address];
        let out = run(&[&args[..], &ALLOW, flags].concat());
        let said = text(&out.stderr);
        assert!(out.status.success(), "{flags:?}: {said}");
        let summary = objects(&out.stdout).pop().unwrap();
        assert_eq!(summary["answered"], 5, "{flags:?}: {summary}");
    }
}

#[test]
#[ignore = "needs DPDK"]
fn a_peer_without_the_network_in_its_list_is_refused() {
    let (_server, address) = serve("refused");
    let device = device("refused", 2);
    let out = run(&["ping", "-c", "1", "--transport", &device, &address]);
    assert!(!out.status.success());
    let said = text(&out.stderr);
    assert!(said.contains("nor one of allow_peers"), "{said}");
}

#[test]
#[ignore = "needs DPDK"]
fn a_server_that_is_killed_costs_pings() {
    let (server, address) = serve("killed");
    let device = device("killed", 2);
    let args = ["ping", &address, "--json", "-i", "20 ms", "-d", "0.3"];
    let over = ["--transport", &device];
    let mut pinging = Running::start(&[&args[..], &over, &ALLOW].concat());
    assert!(pinging.line()["us"].is_number());
    assert_eq!(server.end("-KILL").1, None);
    let begin = Instant::now();
    while pinging.line()["lost"].is_null() {
        assert!(begin.elapsed() < LIMIT, "no ping is lost");
    }
    let (rest, code) = pinging.end("-INT");
    assert_eq!(code, Some(0), "something has answered");
    assert!(rest.last().unwrap()["loss_percent"].as_f64().unwrap() > 0.0);
}

#[test]
fn a_device_that_cannot_be_used_is_named() {
    let cases = [
        ("dpdk", "DEVICE;ip=ADDRESS/BITS"),
        ("dpdk:net_null0", "ip=ADDRESS/BITS"),
        ("dpdk:net_null0;ip=10.85.0.1/40", "1 to 32 bits"),
        ("auto+dpdk:net_null0", "ip=ADDRESS/BITS"),
        (
            "dpdk:net_null0;ip=10.85.0.1/24;--no-huge",
            "/no/such.so: no such file",
        ),
    ];
    for (transport, said) in cases {
        let command = ["echo-server", "127.0.0.1:0", "--transport", transport];
        let out = dunlin(&command)
            .env("DUNLIN_DPDK_LIBRARY", "/no/such.so")
            .output()
            .unwrap();
        assert!(!out.status.success());
        let error = text(&out.stderr);
        assert!(error.contains(said), "{transport}: {error}");
    }
}
