//! Commands over `xdp` and `dpdk`: services and their clients, the cost of endpoints without work,
//! and peers whose data address differs from the address of their control connection.

use std::process::Output;
use std::time::Duration;

use dunlin_testkit::network::{Host, Network};

use super::dpdk::{ALLOW, device};
use super::{Running, objects, run, text};

/// How long processor time is measured; the most that a process without work may use in this time,
/// one percent; and the most measurements.
const WATCHED: Duration = Duration::from_secs(1);
const MOST: Duration = Duration::from_millis(10);
const ATTEMPTS: u32 = 20;

/// A side of the link: its namespace, if it has one, and the flags of its endpoints.
struct Side<'a> {
    host: Option<&'a Host>,
    flags: Vec<String>,
}

impl<'a> Side<'a> {
    fn new(host: Option<&'a Host>, flags: &[&str]) -> Self {
        let flags = flags.iter().map(|&flag| flag.to_owned()).collect();
        Self { host, flags }
    }

    fn args<'b>(&'b self, args: &[&'b str]) -> Vec<&'b str> {
        let flags = self.flags.iter().map(String::as_str);
        args.iter().copied().chain(flags).collect()
    }

    /// Starts a server; returns it and the address at which it listens.
    fn serve(&self, args: &[&str]) -> (Running, String) {
        let args = self.args(args);
        let start = || Running::start(&args);
        let mut server = self.host.map_or_else(start, |host| host.run(start));
        let address = server.line()["listening"].as_str().unwrap().to_owned();
        (server, address)
    }

    fn run(&self, args: &[&str]) -> Output {
        let args = self.args(args);
        let start = || run(&args);
        self.host.map_or_else(start, |host| host.run(start))
    }

    /// The output of a command that must succeed.
    fn said(&self, args: &[&str]) -> String {
        let out = self.run(args);
        assert!(out.status.success(), "{args:?}: {}", text(&out.stderr));
        text(&out.stdout).to_owned()
    }
}

/// A counter of the first endpoint of a process: its packets past the kernel.
fn count(server: &Running, counter: &str) -> u64 {
    let out = run(&["stats", &server.child.id().to_string(), "--json"]);
    let endpoint = &objects(&out.stdout)[0]["endpoints"][0];
    let count = endpoint["transport_counters"][counter].as_u64();
    count.unwrap_or_else(|| panic!("no {counter}: {endpoint}"))
}

/// Checks that the first endpoint of a process has dropped no packet, received or to send.
fn loses_nothing(process: &Running) {
    let out = run(&["stats", &process.child.id().to_string(), "--json"]);
    let endpoint = &objects(&out.stdout)[0]["endpoints"][0];
    let drops = endpoint["drops"].as_object().unwrap();
    assert!(drops.values().all(|count| count == 0), "{endpoint}");
    let counters = endpoint["transport_counters"].as_object().unwrap();
    for (name, count) in counters {
        let is_loss = name.contains("dropped") || name.contains("refused");
        let is_loss = is_loss || ["rx_overflow", "rx_corrupt", "tx_unanswered"].contains(&&**name);
        assert!(!is_loss || count == 0, "{name}: {endpoint}");
    }
}

/// Stores items in a key-value service, and reads them.
fn use_services(near: &Side<'_>, far: &Side<'_>, listen: &str, counter: &str) {
    let memory = ["--memory", "64MiB"];
    let kv = ["kv", "serve", "--listen", listen, "--json"];
    let (server, address) = far.serve(&[&kv[..], &memory].concat());
    let long = "value ".repeat(3000);
    for value in ["short", &long] {
        near.said(&["kv", "set", "key", value, "--server", &address]);
        let got = near.said(&["kv", "get", "key", "--server", &address]);
        assert_eq!(got.trim_end(), value.trim_end());
    }
    assert!(count(&server, counter) > 10, "{counter}");
    assert_eq!(server.end("-INT").1, Some(0));
}

/// The same for the ordered index.
fn use_index(near: &Side<'_>, far: &Side<'_>, listen: &str, counter: &str) {
    let (server, address) = far.serve(&["index", "serve", "--listen", listen, "--json"]);
    for (key, value) in [("b", "2"), ("a", "1")] {
        near.said(&["index", "put", key, value, "--server", &address]);
    }
    let scanned = near.said(&["index", "scan", "--server", &address]);
    assert_eq!(scanned, "a\t1\nb\t2\n");
    assert!(count(&server, counter) > 1, "{counter}");
    assert_eq!(server.end("-INT").1, Some(0));
}

#[test]
fn services_are_used_over_xdp() {
    let Some(network) = Network::new() else {
        return;
    };
    let flags = ["--transport", "xdp:link0"];
    let [near, far] = [&network.left, &network.right].map(|host| Side::new(Some(host), &flags));
    let listen = format!("{}:0", network.right.address);
    use_services(&near, &far, &listen, "rx_datagrams");
    use_index(&near, &far, &listen, "rx_datagrams");
    let (_server, address) = far.serve(&["kv", "serve", "--listen", &listen, "--json"]);
    assert_eq!(near.said(&["health", &address, "Kv"]), "serving\n");
    let out = near.run(&["list", &address]);
    assert_eq!(out.status.code(), Some(5), "{out:?}");
    let wrong = Side::new(near.host, &["--transport", "xdp:link7"]);
    let out = wrong.run(&["health", &address]);
    assert_eq!(out.status.code(), Some(3));
    assert!(text(&out.stdout).contains("link7"), "{out:?}");
}

#[test]
#[ignore = "needs DPDK"]
fn services_are_used_over_dpdk() {
    let [far, near] = [1, 2].map(|number| {
        let device = device("services", number);
        Side::new(None, &["--transport", &device, ALLOW[0], ALLOW[1]])
    });
    use_services(&near, &far, "127.0.0.1:0", "tx_copied_off");
    let [far, near] = [1, 2].map(|number| {
        let device = device("index", number);
        Side::new(None, &["--transport", &device, ALLOW[0], ALLOW[1]])
    });
    use_index(&near, &far, "127.0.0.1:0", "tx_copied_off");
}

/// The most processor time in [`WATCHED`]. Where more threads want to run than there are
/// processors, the same wake-ups are charged about three times as much, because they find nothing
/// in the caches.
fn most() -> Duration {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap();
    let load: f64 = text.split(' ').next().unwrap().parse().unwrap();
    let processors = std::thread::available_parallelism().unwrap().get();
    let is_busy = load > f64::from(u32::try_from(processors).unwrap());
    if is_busy { 3 * MOST } else { MOST }
}

/// Processor time of all threads of a process.
fn processor_time(process: &Running) -> Duration {
    let folder = format!("/proc/{}/task", process.child.id());
    let of_thread = |entry: std::io::Result<std::fs::DirEntry>| {
        let path = entry.unwrap().path().join("schedstat");
        // The thread may have ended.
        let text = std::fs::read_to_string(path).unwrap_or_default();
        text.split(' ').next().and_then(|ns| ns.parse::<u64>().ok())
    };
    let times = std::fs::read_dir(folder).unwrap().filter_map(of_thread);
    Duration::from_nanos(times.sum())
}

/// Lets a client ping a server once, and watches both while they have nothing to do but heartbeats.
fn park(near: &Side<'_>, far: &Side<'_>, listen: &str) {
    let (server, address) = far.serve(&["echo-server", listen, "--json"]);
    let args = near.args(&["ping", "-i", "600", "--json", &address]);
    let start = || Running::start(&args);
    let mut client = near.host.map_or_else(start, |host| host.run(start));
    assert!(client.line()["us"].is_number(), "there is a session");
    // Responses are held for a second, and the keeper of devices looks less often after some time.
    std::thread::sleep(Duration::from_millis(1500));
    let both = [&server, &client];
    // On a busy machine, other processes displace the contents of caches, so the least of these
    // times counts.
    let mut least = [Duration::MAX; 2];
    for _ in 0..ATTEMPTS {
        let before = both.map(processor_time);
        std::thread::sleep(WATCHED);
        let after = both.map(processor_time);
        let used = [0, 1].map(|side| after[side] - before[side]);
        println!("server and client: {used:?} in {WATCHED:?}");
        assert!(
            used.iter().all(|it| *it > Duration::ZERO),
            "heartbeats take some"
        );
        least = [0, 1].map(|side| least[side].min(used[side]));
        if least.iter().all(|it| *it < MOST) {
            break;
        }
    }
    assert!(least.iter().all(|it| *it < most()), "{least:?}");
    // Nothing was lost, not even the first packets, which had to find their neighbours, or the
    // packets that prove addresses.
    both.into_iter().for_each(loses_nothing);
    let (rest, _) = client.end("-INT");
    assert_eq!(rest.last().unwrap()["loss_percent"], 0.0, "{rest:?}");
}

#[test]
fn parked_processes_with_heartbeats_cost_little_over_xdp() {
    let Some(network) = Network::new() else {
        return;
    };
    let flags = ["--transport", "xdp:link0"];
    let [near, far] = [&network.left, &network.right].map(|host| Side::new(Some(host), &flags));
    park(&near, &far, &format!("{}:0", network.right.address));
}

#[test]
#[ignore = "needs DPDK"]
fn parked_processes_with_heartbeats_cost_little_over_dpdk() {
    let [far, near] = [1, 2].map(|number| {
        let device = device("parked", number);
        Side::new(None, &["--transport", &device, ALLOW[0], ALLOW[1]])
    });
    park(&near, &far, "127.0.0.1:0");
}

/// The control plane has one link, and packets another.
#[test]
fn a_data_address_that_is_not_the_control_address_is_proven_over_xdp() {
    let Some(network) = Network::new() else {
        return;
    };
    network.link_further("10.80.0");
    let allow = ["--set", "nexus.allow_peers=10.80.0.0/24"];
    let flags = [&["--transport", "xdp:link1"][..], &allow].concat();
    let [near, far] = [&network.left, &network.right].map(|host| Side::new(Some(host), &flags));
    let (server, listening) = far.serve(&["echo-server", "0.0.0.0:0", "--json"]);
    let (_, port) = listening.rsplit_once(':').unwrap();
    let control = format!("{}:{port}", network.right.address);
    let ping = ["ping", "-c", "5", "-i", "10ms", "--json", &control];
    let summary = objects(near.said(&ping).as_bytes()).pop().unwrap();
    assert_eq!(summary["answered"], 5, "{summary}");
    assert!(count(&server, "rx_datagrams") > 5);
    // Without the list, the server does not believe the address.
    let stranger = Side::new(near.host, &["--transport", "xdp:link1"]);
    let out = stranger.run(&ping);
    assert!(!out.status.success());
    assert!(text(&out.stderr).contains("allow_peers"), "{out:?}");
    // An address at which the client does not get the challenge is not proven.
    let lie = ["--set", "nexus.advertise=10.80.0.9"];
    let liar = Side::new(
        near.host,
        &[&["--transport", "udp"][..], &allow, &lie].concat(),
    );
    let out = liar.run(&ping);
    assert!(!out.status.success(), "{out:?}");
    let said = text(&out.stderr);
    assert!(said.contains("got no proof in time"), "{said}");
    assert_eq!(server.end("-INT").1, Some(0));
}
