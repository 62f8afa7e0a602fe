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

/// The most times that the threads of such a process may be woken in this time. The load of the
/// machine does not change that.
const MOST_WAKES: u64 = 60;
/// Those of a process with a device without interrupts, at which the keeper looks every 10 ms.
const MOST_WAKES_OF_KEEPER: u64 = MOST_WAKES + 110;

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

/// The use of processors by the threads of a process.
#[derive(Clone, Copy, Debug)]
struct Used {
    time: Duration,
    /// How often they waited, and were woken.
    wakes: u64,
}

impl Used {
    fn by(process: &Running) -> Self {
        let mut all = Self {
            time: Duration::ZERO,
            wakes: 0,
        };
        let folder = format!("/proc/{}/task", process.child.id());
        for thread in std::fs::read_dir(folder).unwrap() {
            // The thread may have ended.
            let read = |name| std::fs::read_to_string(thread.as_ref().unwrap().path().join(name));
            let (times, status) = (read("schedstat"), read("status"));
            let (times, status) = (times.unwrap_or_default(), status.unwrap_or_default());
            let number = |text: Option<&str>| text.and_then(|it| it.trim().parse::<u64>().ok());
            all.time += Duration::from_nanos(number(times.split(' ').next()).unwrap_or(0));
            let mut lines = status.lines();
            let wakes = lines.find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
            all.wakes += number(wakes).unwrap_or(0);
        }
        all
    }

    fn since(self, before: Self) -> Self {
        Self {
            time: self.time.saturating_sub(before.time),
            wakes: self.wakes.saturating_sub(before.wakes),
        }
    }

    /// The lesser time and the lesser number.
    fn least(self, other: Self) -> Self {
        Self {
            time: self.time.min(other.time),
            wakes: self.wakes.min(other.wakes),
        }
    }
}

/// Lets a client ping a server once, and watches both while they have nothing to do but heartbeats,
/// for which they may be woken this many times.
fn park(near: &Side<'_>, far: &Side<'_>, listen: &str, most_wakes: u64) {
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
    let mut least = [Used {
        time: Duration::MAX,
        wakes: u64::MAX,
    }; 2];
    for _ in 0..ATTEMPTS {
        let before = both.map(Used::by);
        std::thread::sleep(WATCHED);
        let after = both.map(Used::by);
        let used = [0, 1].map(|side| after[side].since(before[side]));
        println!("server and client: {used:?} in {WATCHED:?}");
        assert!(
            used.iter().all(|it| it.time > Duration::ZERO),
            "heartbeats take some"
        );
        least = [0, 1].map(|side| least[side].least(used[side]));
        if least
            .iter()
            .all(|it| it.time < MOST && it.wakes <= most_wakes)
        {
            break;
        }
    }
    let is_little = |it: &Used| it.time < most() && it.wakes <= most_wakes;
    assert!(least.iter().all(is_little), "{least:?}");
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
    let listen = format!("{}:0", network.right.address);
    park(&near, &far, &listen, MOST_WAKES);
}

#[test]
#[ignore = "needs DPDK"]
fn parked_processes_with_heartbeats_cost_little_over_dpdk() {
    let [far, near] = [1, 2].map(|number| {
        let device = device("parked", number);
        Side::new(None, &["--transport", &device, ALLOW[0], ALLOW[1]])
    });
    park(&near, &far, "127.0.0.1:0", MOST_WAKES_OF_KEEPER);
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

/// The kernel has one end of the link, and DPDK has the other one.
#[test]
#[ignore = "needs DPDK"]
fn dpdk_and_xdp_talk_to_each_other() {
    let Some(network) = Network::new() else {
        return;
    };
    let (left, right) = (&network.left, &network.right);
    network.link_further("10.80.0");
    for host in [left, right] {
        host.ip("addr flush dev link0").unwrap();
    }
    right.ip("addr add 10.85.0.2/24 dev link0").unwrap();
    // The first packets leave through the kernel, and a device expects whole sums.
    right.write_sums();
    let device = "dpdk:net_af_xdp0,iface=link0;ip=10.85.0.1/24;--no-huge -m 256";
    let dpdk = Side::new(Some(left), &["--transport", device, ALLOW[0], ALLOW[1]]);
    let xdp = Side::new(
        Some(right),
        &["--transport", "xdp:link0", ALLOW[0], ALLOW[1]],
    );
    for (near, far, control) in [(&dpdk, &xdp, "10.80.0.2"), (&xdp, &dpdk, "10.80.0.1")] {
        let (server, listening) = far.serve(&["echo-server", "0.0.0.0:0", "--json"]);
        let (_, port) = listening.rsplit_once(':').unwrap();
        let control = format!("{control}:{port}");
        for size in ["32", "20000"] {
            let ping = ["ping", "-c", "10", "-i", "10ms", "-d", "5", "--json"];
            let said = near.said(&[&ping[..], &["-s", size, &control]].concat());
            let summary = objects(said.as_bytes()).pop().unwrap();
            assert_eq!(summary["answered"], 10, "{summary}");
        }
        // The packets bypassed the kernel: a device has no other way.
        if control.starts_with("10.80.0.2") {
            assert!(count(&server, "rx_datagrams") > 20);
            assert_eq!(count(&server, "rx_wrong_sum"), 0);
        }
        assert_eq!(server.end("-INT").1, Some(0));
    }
}
