//! Processes of one user at one interface, each at a queue of its own: they share the program, and
//! lose nothing when the process that made it is killed.

use std::io::{BufRead, BufReader, Lines, Write};
use std::net::{SocketAddr, UdpSocket};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use dunlin_core::transport::{Halves, Rx};
use dunlin_testkit::network::{Host, Network};
use dunlin_testkit::wait::until;
use dunlin_xdp::{Options, Xdp, XdpRx, XdpTx};

/// The environment variable of a child: its queue.
const QUEUE: &str = "DUNLIN_XDP_QUEUE";

/// Datagrams that are sent together; fewer than an endpoint's ring has places.
const TOGETHER: u32 = 100;

/// A process with an endpoint. It is killed when the value is dropped.
struct Holder {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    address: SocketAddr,
}

/// The number of frames that a holder got, and of those that the program steered to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Got {
    frames: u64,
    steered: u64,
}

impl Holder {
    fn start(host: &Host, queue: u32) -> Self {
        let mut child = host.run(|| {
            Command::new(std::env::current_exe().unwrap())
                .args([
                    "--exact",
                    "processes::the_others_keep_the_program",
                    "--nocapture",
                ])
                .env(QUEUE, queue.to_string())
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap()
        });
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let address = next(&mut lines).parse().unwrap();
        Self {
            child,
            lines,
            address,
        }
    }

    /// Sends it a line; returns its answer.
    fn ask(&mut self, line: &str) -> String {
        writeln!(self.child.stdin.as_mut().unwrap(), "{line}").unwrap();
        next(&mut self.lines)
    }

    /// Makes it open another endpoint, at another queue.
    fn open_at(&mut self, queue: u32) {
        self.ask(&format!("open {queue}"));
    }

    /// The frames that it has got so far, after it has waited for this number of them.
    fn got(&mut self, wanted: u64) -> Got {
        let line = self.ask(&wanted.to_string());
        let (frames, steered) = line.split_once(' ').unwrap();
        Got {
            frames: frames.parse().unwrap(),
            steered: steered.parse().unwrap(),
        }
    }

    /// Sends datagrams to it; returns the number that it got, and of those that the program
    /// steered.
    fn reached_from(&mut self, socket: &UdpSocket) -> Got {
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

    fn kill(&mut self) {
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

/// The next line that the child itself has written, without those of its test harness.
fn next(lines: &mut Lines<BufReader<ChildStdout>>) -> String {
    let mut said = lines.map(Result::unwrap);
    let line = said.find_map(|line| {
        line.rsplit_once("holder: ")
            .map(|(_, said)| said.to_owned())
    });
    line.expect("the child lives")
}

fn open(queue: u32) -> Halves<XdpRx, XdpTx> {
    let options = Options {
        interface: "link0".to_owned(),
        queue,
        umem_bytes: 4 << 20,
        udp: dunlin_transport::udp::Options {
            ip: [10, 79, 0, 2].into(),
            ..Default::default()
        },
        ..Options::default()
    };
    Xdp::open(&options).unwrap()
}

/// Opens an endpoint at the queue. Answers each line that has a number with the frames that it has
/// got so far, when it has that number of them, or after ten seconds.
fn hold(queue: u32) {
    let mut halves = open(queue);
    println!("holder: {}", halves.rx.local_addr());
    let (mut frames, mut others) = (0, Vec::new());
    for line in std::io::stdin().lines() {
        let line = line.unwrap();
        if let Some(queue) = line.strip_prefix("open ") {
            others.push(open(queue.parse().unwrap()));
            println!("holder: opened");
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

fn socket(host: &Host) -> UdpSocket {
    host.run(|| UdpSocket::bind((host.address, 0)).unwrap())
}

#[test]
fn the_others_keep_the_program() {
    if let Some(queue) = std::env::var_os(QUEUE) {
        return hold(queue.to_str().unwrap().parse().unwrap());
    }
    let Some(network) = Network::with_queues(4) else {
        return;
    };
    let from = socket(&network.left);
    let [mut first, mut second, mut third] =
        [1, 0, 2].map(|queue| Holder::start(&network.right, queue));
    assert_eq!(network.right.xdp_programs(), 1);
    let steered = Got {
        frames: TOGETHER.into(),
        steered: TOGETHER.into(),
    };
    let by_kernel = Got {
        steered: 0,
        ..steered
    };
    assert_eq!(second.reached_from(&from), steered);
    assert_eq!(third.reached_from(&from), by_kernel, "the other queue");
    // The first process made the program. It is killed while datagrams wait for the second one.
    for number in 0..TOGETHER {
        from.send_to(&number.to_le_bytes(), second.address).unwrap();
    }
    first.kill();
    let before = second.got(2 * u64::from(TOGETHER));
    assert_eq!(second.reached_from(&from), steered);
    assert_eq!(third.reached_from(&from), by_kernel);
    assert_eq!(before.frames, 2 * u64::from(TOGETHER));
    assert_eq!(network.right.xdp_programs(), 1);
    // Another process can still join, and the last one takes the program with it.
    let mut fourth = Holder::start(&network.right, 3);
    assert_eq!(fourth.reached_from(&from), by_kernel);
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
    // The third process gets the queue and the number of the killed one.
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
    // At first nothing has the queue and the number of the killed process; then a second endpoint
    // of the survivor has them.
    expect_by_kernel(&network, &from, address);
    second.open_at(0);
    expect_by_kernel(&network, &from, address);
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
