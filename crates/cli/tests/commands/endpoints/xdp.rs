//! Echoes between two namespaces over `xdp`, and the errors of an interface that cannot be used.

use std::time::Instant;

use dunlin_testkit::network::{Host, Network};
use serde_json::Value;

use super::{LIMIT, Running, dunlin, objects, run, text};

/// An echo server in the namespace, and its address.
fn serve(host: &Host, transport: &str) -> (Running, String) {
    let listen = format!("{}:0", host.address);
    let args = ["echo-server", &listen, "--json", "--transport", transport];
    let mut server = host.run(|| Running::start(&args));
    let address = server.line()["listening"].as_str().unwrap().to_owned();
    (server, address)
}

/// Datagrams that the kernel's network stack has delivered in the namespace.
pub(super) fn datagrams(host: &Host) -> u64 {
    let table = host.run(|| std::fs::read_to_string("/proc/thread-self/net/snmp").unwrap());
    let line = table.lines().filter(|line| line.starts_with("Udp:")).nth(1);
    line.unwrap()
        .split_whitespace()
        .nth(1)
        .unwrap()
        .parse()
        .unwrap()
}

#[test]
fn echoes_between_xdp_and_udp() {
    let Some(network) = Network::new() else {
        return;
    };
    for (near, far) in [
        ("xdp:link0", "xdp:link0"),
        ("xdp:link0:0", "udp"),
        ("udp", "xdp:link0"),
        ("auto", "xdp:link0"),
        ("auto+xdp:link0", "auto+xdp:link0:0"),
        ("auto+xdp:link0", "udp"),
        ("udp", "auto+xdp:link0"),
    ] {
        let before = datagrams(&network.right);
        let (server, address) = serve(&network.right, far);
        for size in ["32", "100000"] {
            let ping = ["ping", "-c", "5", "-i", "10ms", "-s", size, "--json"];
            let args = [&ping[..], &["--transport", near, &address]].concat();
            let out = network.left.run(|| run(&args));
            let said = text(&out.stderr);
            assert!(
                out.status.success(),
                "{near} to {far}, {size} bytes: {said}"
            );
            let summary = objects(&out.stdout).pop().unwrap();
            assert_eq!(summary["answered"], 5, "{summary}");
        }
        let through_kernel = datagrams(&network.right) - before;
        // Only the first packets, for which no Ethernet address is known yet, may come through the
        // kernel. Five large requests take hundreds of packets.
        match (near.contains("xdp:"), far.contains("xdp:")) {
            (_, true) => assert!(through_kernel < 20, "{near} to {far}: {through_kernel}"),
            _ => assert!(through_kernel >= 20, "{near} to {far}: {through_kernel}"),
        }
        let pid = server.child.id().to_string();
        let out = run(&["stats", &pid, "--json"]);
        let shown = &objects(&out.stdout)[0]["endpoints"][0]["transport_counters"];
        assert_eq!(far.contains("xdp:"), shown["rx_datagrams"] != 0, "{shown}");
        assert_eq!(shown["rx_wrong_sum"], 0, "{shown}");
        // Each packet that leaves in a frame is copied: here, those of five short and five large
        // answers.
        let is_xdp = far.contains("xdp:");
        assert_eq!(is_xdp, shown["umem_bytes"] == 64 << 20, "{shown}");
        let copied = ["tx_copied_short", "tx_copied_packed", "tx_copied_msgbuf"];
        let copied = copied.map(|name| shown[name].as_u64().unwrap());
        assert_eq!(is_xdp, copied.iter().sum::<u64>() > 5, "{shown}");
        let (_, code) = server.end("-INT");
        assert_eq!(code, Some(0));
    }
}

/// A file of a test, which is removed with this value.
struct Scratch(std::path::PathBuf);

impl Scratch {
    fn new(name: &str, text: &str) -> Self {
        let name = format!("dunlin-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, text).unwrap();
        Self(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

const TABLE: &str = "\
[[grant]]
user = 0
interface = \"link0\"
addresses = [\"10.79.0.2\"]
ports = \"31900-31901\"
queues = \"0\"
umem_mib = 4
rules = true
";

#[test]
fn a_daemon_opens_sockets_as_its_table_permits() {
    let Some(network) = Network::new() else {
        return;
    };
    let host = &network.right;
    let table = Scratch::new("table.toml", TABLE);
    let socket = Scratch::new("setup.sock", "");
    // The daemon replaces only a socket.
    let daemon = [
        "xdp-setup",
        "--table",
        table.path(),
        "--socket",
        socket.path(),
        "--json",
    ];
    let out = host.run(|| run(&daemon));
    assert!(text(&out.stderr).contains("cannot listen at"), "{out:?}");
    std::fs::remove_file(&socket.0).unwrap();
    let mut daemon = host.run(|| Running::start(&daemon));
    assert_eq!(daemon.line()["listening"], socket.path());
    let listen = format!("{}:0", host.address);
    let setup = format!("xdp.setup={}", socket.path());
    let serve = ["echo-server", &listen, "--transport", "xdp:link0", "--json"];
    let serve = [&serve[..], &["--set", &setup, "--set"]].concat();
    let out = host.run(|| run(&[&serve[..], &["udp.port=31902"]].concat()));
    let error = text(&out.stderr);
    assert!(
        error.contains("does not grant user 0 10.79.0.2:31902"),
        "{error}"
    );
    let granted = [&serve[..], &["udp.port=31900"]].concat();
    let mut server = host.run(|| Running::start(&granted));
    let address = server.line()["listening"].as_str().unwrap().to_owned();
    let before = datagrams(host);
    let summary = ping(&network.left, &address).last();
    assert_eq!(summary["answered"], 200, "{summary}");
    assert!(datagrams(host) - before < 20);
    // The daemon offers its program to no process.
    let [state, _, advice] = info_of_link(host);
    assert_eq!(state, "improve");
    assert!(advice.contains("dunlin xdp-setup"), "{advice}");
    assert!(advice.contains("end its process"), "{advice}");
    assert!(advice.contains("xdpgeneric off"), "{advice}");
    // The table grants less memory than the option asks for, and the device has no rules.
    let out = run(&["stats", &server.child.id().to_string(), "--json"]);
    let shown = &objects(&out.stdout)[0]["endpoints"][0]["transport_counters"];
    assert_eq!(shown["umem_bytes"], 4 << 20, "{shown}");
    assert_eq!(shown["rx_rules"], 0, "{shown}");
    assert_eq!(shown["rx_rules_refused"], 1, "{shown}");
    // Without the daemon, packets come through the kernel.
    assert_eq!(daemon.end("-INT").1, Some(0));
    assert!(!socket.0.exists());
    let summary = ping(&network.left, &address).last();
    assert_eq!(summary["answered"], 200, "{summary}");
    assert!(datagrams(host) - before > 100);
    assert_eq!(server.end("-INT").1, Some(0));
}

/// The facts that `dunlin info` shows in a namespace.
fn info(host: &Host) -> Vec<Value> {
    // The command finds interfaces in `/sys`, which `ip netns exec` mounts for the namespace.
    let place = host.place("link0");
    let name = place.split('/').next().unwrap();
    let out = std::process::Command::new("ip")
        .args([
            "netns",
            "exec",
            name,
            env!("CARGO_BIN_EXE_dunlin"),
            "info",
            "--json",
        ])
        .output()
        .unwrap();
    objects(&out.stdout)
}

/// The state, value and advice of the fact about `link0` there.
fn info_of_link(host: &Host) -> [String; 3] {
    let facts = info(host);
    let is_it = |fact: &&Value| {
        let value = fact["value"].as_str();
        value.is_some_and(|it| it.starts_with("link0: "))
    };
    let of_link: Vec<_> = facts.iter().filter(is_it).collect();
    assert_eq!(of_link.len(), 1, "{facts:?}");
    ["state", "value", "advice"]
        .map(|name| of_link[0][name].as_str().unwrap_or_default().to_owned())
}

#[test]
fn info_shows_the_state_of_an_interface_and_says_what_to_do() {
    let Some(network) = Network::new() else {
        return;
    };
    let host = &network.right;
    // The kernel notices the carrier of a new link up to a second later.
    let start = Instant::now();
    let [state, value, advice] = loop {
        let shown = info_of_link(host);
        if shown[0] == "good" || start.elapsed() > LIMIT {
            break shown;
        }
    };
    assert!(value.contains("no rules for queues"), "{value}");
    assert!(value.contains("native mode"), "{value}");
    assert_eq!((&*state, &*advice), ("good", ""));
    // The program of a process of this user does not hinder another one.
    let (server, _) = serve(host, "xdp:link0");
    let [state, value, _] = info_of_link(host);
    assert!(value.contains("of a process of this user"), "{value}");
    assert_eq!(state, "good");
    server.end("-INT");
    host.ip("link set link0 down").unwrap();
    let [state, _, advice] = info_of_link(host);
    assert_eq!(state, "improve");
    assert!(advice.contains("`ip link set dev link0 up`"), "{advice}");
}

#[test]
fn info_lists_the_parts_that_no_test_has_reached() {
    let facts = objects(&run(&["info", "--json"]).stdout);
    for (name, part) in [
        ("xdp: untested", "xdp.zero_copy"),
        ("dpdk: untested", "network cards"),
    ] {
        let fact = facts.iter().find(|fact| fact["name"] == name);
        let value = fact.unwrap_or_else(|| panic!("no {name}: {facts:?}"))["value"].as_str();
        assert!(value.unwrap().contains(part), "{name}: {value:?}");
    }
}

#[test]
fn a_table_is_checked() {
    let table = Scratch::new("checked.toml", TABLE);
    let check = ["xdp-setup", "--check", "--json", "--table", table.path()];
    let mode = |mode| std::os::unix::fs::PermissionsExt::from_mode(mode);
    std::fs::set_permissions(&table.0, mode(0o666)).unwrap();
    let out = run(&check);
    assert_eq!(out.status.code(), Some(2));
    assert!(text(&out.stderr).contains("only root may write it"));
    std::fs::set_permissions(&table.0, mode(0o644)).unwrap();
    let out = run(&check);
    match std::os::unix::fs::MetadataExt::uid(&table.0.metadata().unwrap()) {
        0 => assert_eq!(objects(&out.stdout)[0]["grants"], 1),
        _ => assert_eq!(out.status.code(), Some(2)),
    }
    std::fs::write(&table.0, TABLE.replace("ports", "port")).unwrap();
    let out = run(&check);
    assert_eq!(out.status.code(), Some(2));
}

/// Unless it is killed, a daemon that ends removes its own socket. It never removes the socket of
/// another running daemon.
#[test]
fn a_daemon_that_cannot_go_on_leaves_no_socket() {
    let Some(network) = Network::new() else {
        return;
    };
    let host = &network.right;
    let table = Scratch::new("ending.toml", TABLE);
    let socket = Scratch::new("ending.sock", "");
    std::fs::remove_file(&socket.0).unwrap();
    let of = ["--table", table.path(), "--socket", socket.path()];
    let args = [&["xdp-setup"][..], &of].concat();
    // It cannot write its first line.
    let full = std::fs::File::options().write(true).open("/dev/full");
    let mut command = dunlin(&args);
    command.stdout(full.unwrap());
    let out = host.run(|| command.output().unwrap());
    assert_eq!(out.status.code(), Some(1), "{out:?}");
    assert!(!socket.0.exists());
    let mut daemon = host.run(|| Running::start(&[&args[..], &["--json"]].concat()));
    daemon.line();
    let out = host.run(|| run(&args));
    assert_eq!(out.status.code(), Some(1));
    assert!(
        text(&out.stderr).contains("another daemon listens"),
        "{out:?}"
    );
    assert!(socket.0.exists());
    // A killed daemon leaves its socket, which the next one replaces.
    assert_eq!(daemon.end("-KILL").1, None);
    assert!(socket.0.exists());
    let mut daemon = host.run(|| Running::start(&[&args[..], &["--json"]].concat()));
    daemon.line();
    assert_eq!(daemon.end("-TERM").1, Some(0));
    assert!(!socket.0.exists());
}

#[test]
fn auto_over_xdp_shares_memory_with_peers_of_its_host() {
    let Some(network) = Network::new() else {
        return;
    };
    let host = &network.right;
    let (server, address) = serve(host, "auto+xdp:link0");
    // This client can reach the server only over shared memory.
    let ping = ["ping", "-c", "5", "-i", "10ms", "-s", "100000", "--json"];
    let args = [&ping[..], &["--transport", "shm", &address]].concat();
    let out = host.run(|| run(&args));
    assert!(out.status.success(), "{}", text(&out.stderr));
    assert_eq!(objects(&out.stdout).pop().unwrap()["answered"], 5);
    assert_eq!(server.end("-INT").1, Some(0));
}

/// XDP programs at the interface of the namespace.
fn programs(host: &Host) -> usize {
    let args = ["-d", "link", "show", "link0"];
    let shown = host.run(|| std::process::Command::new("ip").args(args).output());
    text(&shown.unwrap().stdout).matches("prog/xdp").count()
}

/// Starts a ping of a server, which lasts a second.
fn ping(host: &Host, address: &str) -> Running {
    let ping = ["ping", "-c", "200", "-i", "5ms", "--json", address];
    host.run(|| Running::start(&ping))
}

#[test]
fn processes_share_an_interface_and_one_that_is_killed_costs_the_others_no_call() {
    let Some(network) = Network::with_queues(3) else {
        return;
    };
    let host = &network.right;
    let serve = |queue| serve(host, &format!("xdp:link0:{queue}"));
    // The packets come to queue 0. The process that attaches the program has another queue.
    let [(first, _), (second, at_second), (third, at_third)] = [1, 0, 2].map(serve);
    assert_eq!(programs(host), 1);
    let before = datagrams(host);
    let mut to_second = ping(&network.left, &at_second);
    to_second.line();
    assert_eq!(first.end("-KILL").1, None);
    let summary = to_second.last();
    assert_eq!(summary["answered"], 200, "{summary}");
    // The packets did not pass through the kernel.
    assert!(datagrams(host) - before < 20);
    let summary = ping(&network.left, &at_third).last();
    assert_eq!(summary["answered"], 200, "{summary}");
    assert_eq!(programs(host), 1);
    second.end("-KILL");
    third.end("-KILL");
    let begin = std::time::Instant::now();
    while programs(host) > 0 {
        assert!(begin.elapsed() < LIMIT, "the program is still there");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

#[test]
fn an_interface_that_cannot_be_used_is_named() {
    for (transport, said) in [
        ("xdp", "xdp:INTERFACE[:QUEUE]"),
        ("xdp:", "the interface is missing"),
        ("auto+xdp", "auto+xdp:INTERFACE[:QUEUE]"),
        ("auto+xdp::0", "the interface is missing"),
        ("xdp:no/name", "an interface's name"),
        ("xdp:lo:4096", "4095"),
        ("xdp:nothing0", "nothing0"),
    ] {
        let begin = std::time::Instant::now();
        let out = run(&["echo-server", "127.0.0.1:0", "--transport", transport]);
        assert!(begin.elapsed() < LIMIT);
        assert!(!out.status.success());
        let error = text(&out.stderr);
        assert!(error.contains(said), "{transport}: {error}");
    }
}
