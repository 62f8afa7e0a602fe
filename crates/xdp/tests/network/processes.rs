//! Processes of one user at one interface, each at a queue of its own: they share the program, and
//! lose nothing when the process that made it is killed.

use std::io::{BufRead, BufReader, Lines, Write};
use std::net::{SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use dunlin_core::transport::{Halves, Rx};
use dunlin_testkit::network::{Host, Network};
use dunlin_testkit::wait::until;
use dunlin_xdp::{Options, Xdp, XdpRx, XdpTx};

use crate::ends::{Echo, End, at};

/// The environment variable of a child: its queue, and perhaps its user, its port and the path of
/// the daemon that opens its sockets.
const PLACE: &str = "DUNLIN_XDP_PLACE";

/// Datagrams that are sent together; fewer than an endpoint's ring has places.
pub(crate) const TOGETHER: u32 = 100;

/// A process with an endpoint. It is killed when the value is dropped.
pub(crate) struct Holder {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    pub(crate) address: SocketAddr,
}

/// How many frames a holder got, and how many of them the program steered to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Got {
    pub(crate) frames: u64,
    pub(crate) steered: u64,
}

/// All datagrams, through the ring.
pub(crate) const STEERED: Got = Got {
    frames: TOGETHER as u64,
    steered: TOGETHER as u64,
};

/// All datagrams, through the kernel.
pub(crate) const BY_KERNEL: Got = Got {
    steered: 0,
    ..STEERED
};

impl Holder {
    fn start(host: &Host, queue: u32) -> Self {
        Self::try_start(host, &queue.to_string()).unwrap()
    }

    /// Starts a process at this place; returns the reason if it cannot open its endpoint.
    pub(crate) fn try_start(host: &Host, place: &str) -> Result<Self, String> {
        let mut child = host.run(|| {
            Command::new(std::env::current_exe().unwrap())
                .args([
                    "--exact",
                    "processes::the_others_keep_the_program",
                    "--nocapture",
                ])
                .env(PLACE, place)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap()
        });
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let said = next(&mut lines);
        match said.parse() {
            Ok(address) => Ok(Self {
                child,
                lines,
                address,
            }),
            Err(_) => {
                child.wait().unwrap();
                Err(said)
            }
        }
    }

    /// Sends the process a line, and returns the answer.
    fn ask(&mut self, line: &str) -> String {
        writeln!(self.child.stdin.as_mut().unwrap(), "{line}").unwrap();
        next(&mut self.lines)
    }

    /// Makes the process open another endpoint, at another queue.
    fn open_at(&mut self, queue: u32) {
        assert_eq!(self.open(&queue.to_string()), "opened");
    }

    /// Makes the process open another endpoint at this place, like [`Self::try_start`].
    pub(crate) fn open(&mut self, place: &str) -> String {
        self.ask(&format!("open {place}"))
    }

    /// Waits until the process has got `wanted` frames, or for ten seconds, and returns its counts.
    fn got(&mut self, wanted: u64) -> Got {
        let line = self.ask(&wanted.to_string());
        let (frames, steered) = line.split_once(' ').unwrap();
        Got {
            frames: frames.parse().unwrap(),
            steered: steered.parse().unwrap(),
        }
    }

    /// Sends datagrams to it; returns how many it got, and how many of them the program steered.
    pub(crate) fn reached_from(&mut self, socket: &UdpSocket) -> Got {
        let before = self.got(0);
        for number in 0..TOGETHER {
            socket.send_to(&number.to_le_bytes(), self.address).unwrap();
        }
        let after = self.got(before.frames + u64::from(TOGETHER));
        Got {
            frames: after.frames - before.frames,
            steered: after.steered - before.steered,
        }
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The next line that the child itself has written; skips the lines of its test harness.
fn next(lines: &mut Lines<BufReader<ChildStdout>>) -> String {
    let mut said = lines.map(Result::unwrap);
    let line = said.find_map(|line| {
        line.rsplit_once("holder: ")
            .map(|(_, said)| said.to_owned())
    });
    line.expect("the child lives")
}

/// Opens an endpoint at a place: `QUEUE [USER [PORT SETUP]]`. A user's number other than 0 takes
/// all privileges from the process.
fn open(place: &str) -> std::io::Result<Halves<XdpRx, XdpTx>> {
    let mut words = place.split(' ');
    let queue = words.next().unwrap().parse().unwrap();
    let user = words.next().map_or(0, |user| user.parse().unwrap());
    let port = words.next().map_or(0, |port| port.parse().unwrap());
    if user != 0 {
        become_user(user);
    }
    let options = Options {
        interface: "link0".to_owned(),
        queue,
        // Twice what the daemon of these tests grants (`setup.rs`).
        umem_bytes: 8 << 20,
        setup: words.next().map(PathBuf::from),
        udp: dunlin_transport::udp::Options {
            ip: [10, 79, 0, 2].into(),
            port,
            ..Default::default()
        },
        ..Options::default()
    };
    Xdp::open(&options)
}

/// Turns this process into one of another user, without any privilege.
fn become_user(user: u32) {
    // SAFETY: numbers, and no groups.
    unsafe {
        libc::setgroups(0, std::ptr::null());
        libc::setgid(user);
        libc::setuid(user);
        assert_eq!((libc::getuid(), libc::geteuid()), (user, user));
    }
}

/// Opens an endpoint at the place. A line with a number asks for the frames that have come: the
/// answer follows when they are at least that many, or after ten seconds.
fn hold(place: &str) {
    let mut halves = match open(place) {
        Ok(halves) => halves,
        Err(error) => return println!("holder: {error}"),
    };
    println!("holder: {}", halves.rx.local_addr());
    let (mut frames, mut others) = (0, Vec::new());
    for line in std::io::stdin().lines() {
        let line = line.unwrap();
        if let Some(place) = line.strip_prefix("open ") {
            match open(place) {
                Ok(other) => {
                    others.push(other);
                    println!("holder: opened");
                }
                Err(error) => println!("holder: {error}"),
            }
            continue;
        }
        let (wanted, begin) = (line.parse().unwrap(), Instant::now());
        loop {
            for index in 0..halves.rx.burst() {
                // The kernel may join datagrams of four bytes.
                frames += halves.rx.frame(index).bytes.len() / 4;
            }
            if frames >= wanted || begin.elapsed() > Duration::from_secs(10) {
                break;
            }
        }
        let details = halves.rx.details();
        let steered = details.iter().find(|(name, _)| *name == "rx_datagrams");
        println!("holder: {frames} {}", steered.unwrap().1);
    }
}

pub(crate) fn socket(host: &Host) -> UdpSocket {
    host.run(|| UdpSocket::bind((host.address, 0)).unwrap())
}

#[test]
fn the_others_keep_the_program() {
    if let Some(place) = std::env::var_os(PLACE) {
        return hold(place.to_str().unwrap());
    }
    let Some(network) = Network::with_queues(4) else {
        return;
    };
    let from = socket(&network.left);
    let [mut first, mut second, mut third] =
        [1, 0, 2].map(|queue| Holder::start(&network.right, queue));
    assert_eq!(network.right.xdp_programs(), 1);
    assert_eq!(second.reached_from(&from), STEERED);
    assert_eq!(third.reached_from(&from), BY_KERNEL, "the other queue");
    // Another poll returns the frames of the last packets to the fill ring.
    second.got(0);
    // The first process made the program. It is killed while datagrams wait for the second one.
    for number in 0..TOGETHER {
        from.send_to(&number.to_le_bytes(), second.address).unwrap();
    }
    first.kill();
    let before = second.got(2 * u64::from(TOGETHER));
    assert_eq!(second.reached_from(&from), STEERED);
    assert_eq!(third.reached_from(&from), BY_KERNEL);
    assert_eq!(before.frames, 2 * u64::from(TOGETHER));
    assert_eq!(network.right.xdp_programs(), 1);
    // Another process can still join, and the last one takes the program with it.
    let mut fourth = Holder::start(&network.right, 3);
    assert_eq!(fourth.reached_from(&from), BY_KERNEL);
    second.kill();
    third.kill();
    assert_eq!(network.right.xdp_programs(), 1);
    fourth.kill();
    until(|| network.right.xdp_programs() == 0);
}

#[test]
fn the_address_of_a_killed_process_is_free() {
    let Some(network) = Network::with_queues(4) else {
        return;
    };
    let from = socket(&network.left);
    let mut first = Holder::start(&network.right, 0);
    let _second = Holder::start(&network.right, 1);
    let address = first.address;
    first.kill();
    // The third process gets the queue of the killed one, and its socket's number in the map.
    let mut third = Holder::start(&network.right, 0);
    expect_by_kernel(&network, &from, address);
    assert_eq!(third.reached_from(&from).steered, u64::from(TOGETHER));
}

#[test]
fn a_survivor_gets_no_packets_of_a_killed_process() {
    let Some(network) = Network::with_queues(4) else {
        return;
    };
    let from = socket(&network.left);
    let mut first = Holder::start(&network.right, 0);
    let mut second = Holder::start(&network.right, 1);
    let address = first.address;
    first.kill();
    // At first, no socket has the queue and the map number of the killed process's socket; then a
    // second endpoint of the survivor has them.
    expect_by_kernel(&network, &from, address);
    second.open_at(0);
    expect_by_kernel(&network, &from, address);
}

#[test]
fn a_process_without_a_free_queue_has_an_interface_of_its_own() {
    let (Some(network), Some(other)) = (Network::new(), Network::new()) else {
        return;
    };
    let (host, container) = (&network.right, &other.left);
    let from = socket(&network.left);
    let mut first = Holder::start(host, 0);
    let why = Holder::try_start(host, "0").map(|_| ()).unwrap_err();
    assert!(
        why.contains("has queue 0") && why.contains("macvlan"),
        "{why}"
    );
    let place = container.place("own");
    let name = place.split('/').next().unwrap();
    let made = format!("link add link link0 name own netns {name} type macvlan mode bridge");
    host.ip(&made).unwrap();
    for command in [
        "addr flush dev link0",
        "addr add 10.79.0.3/24 dev own",
        "link set own up",
    ] {
        container.ip(command).unwrap();
    }
    let mut options = at(container, false);
    "own".clone_into(&mut options.interface);
    options.udp.ip = [10, 79, 0, 3].into();
    let second = End::<Xdp>::open(container, 1, &options);
    let near = End::<Xdp>::open(&network.left, 2, &at(&network.left, false));
    let mut echo = Echo::new(near, second);
    for len in [32, 1000, 20_000] {
        echo.calls(30, len);
    }
    assert!(echo.far("rx_datagrams") > 40);
    assert!(echo.far("tx_datagrams") > 40);
    assert_eq!(first.reached_from(&from), STEERED);
}

/// Checks that a socket of the kernel at the address gets packets.
fn expect_by_kernel(network: &Network, from: &UdpSocket, address: SocketAddr) {
    let heir = network.right.run(|| UdpSocket::bind(address).unwrap());
    heir.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    from.send_to(b"for the heir", address).unwrap();
    let mut room = [0; 64];
    let len = heir.recv(&mut room).unwrap();
    assert_eq!(&room[..len], b"for the heir");
}
