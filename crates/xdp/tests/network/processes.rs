//! Processes of one user at one interface, each at a queue of its own: they share the program, and
//! lose nothing when the process that made it is killed.

use std::io::{BufRead, BufReader, Lines, Write};
use std::net::{SocketAddr, UdpSocket};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use dunlin_core::transport::Rx;
use dunlin_testkit::network::{Host, Network};
use dunlin_xdp::{Options, Xdp};

use crate::life::{programs, until};

/// The environment variable of a child: its queue.
const QUEUE: &str = "DUNLIN_XDP_QUEUE";

/// Datagrams that are sent together; fewer than an endpoint's ring has places.
const TOGETHER: u32 = 100;

/// A process with an endpoint. It is killed when the value goes.
struct Holder {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    address: SocketAddr,
}

/// The frames that a holder got, and those of them that the program led to it.
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

    fn got(&mut self) -> Got {
        writeln!(self.child.stdin.as_mut().unwrap()).unwrap();
        let line = next(&mut self.lines);
        let (frames, steered) = line.split_once(' ').unwrap();
        Got {
            frames: frames.parse().unwrap(),
            steered: steered.parse().unwrap(),
        }
    }

    /// Sends datagrams to it; returns how many of them it got, and how many by the program.
    fn reached_from(&mut self, socket: &UdpSocket) -> Got {
        let before = self.got();
        for number in 0..TOGETHER {
            socket.send_to(&number.to_le_bytes(), self.address).unwrap();
        }
        let after = self.got();
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

/// The next line of a child that is not one of the test harness.
fn next(lines: &mut Lines<BufReader<ChildStdout>>) -> String {
    let mut said = lines.map(Result::unwrap);
    let line = said.find_map(|line| {
        line.rsplit_once("holder: ")
            .map(|(_, said)| said.to_owned())
    });
    line.expect("the child lives")
}

/// Opens an endpoint at the queue, and answers each line with the frames that it got so far.
fn hold(queue: u32) {
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
    let mut halves = Xdp::open(&options).unwrap();
    println!("holder: {}", halves.rx.local_addr());
    let mut frames = 0;
    for line in std::io::stdin().lines() {
        line.unwrap();
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_millis(200) {
            for index in 0..halves.rx.burst() {
                // The kernel may join datagrams of four bytes.
                frames += halves.rx.frame(index).bytes.len() / 4;
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
    assert_eq!(programs(&network.right), 1);
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
    // The first one made the program. It is killed while datagrams wait.
    for number in 0..TOGETHER {
        from.send_to(&number.to_le_bytes(), second.address).unwrap();
    }
    let before = second.got();
    first.kill();
    assert_eq!(second.reached_from(&from), steered);
    assert_eq!(third.reached_from(&from), by_kernel);
    assert_eq!(before.frames, 2 * u64::from(TOGETHER));
    assert_eq!(programs(&network.right), 1);
    // Another process can still join, and the last one takes the program with it.
    let mut fourth = Holder::start(&network.right, 3);
    assert_eq!(fourth.reached_from(&from), by_kernel);
    second.kill();
    third.kill();
    assert_eq!(programs(&network.right), 1);
    fourth.kill();
    until(|| programs(&network.right) == 0);
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
    // It gets the queue and the number of the one that was killed.
    let mut third = Holder::start(&network.right, 0);
    let heir = network.right.run(|| UdpSocket::bind(address).unwrap());
    heir.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    from.send_to(b"for the heir", address).unwrap();
    let mut room = [0; 64];
    let len = heir.recv(&mut room).unwrap();
    assert_eq!(&room[..len], b"for the heir");
    assert_eq!(third.reached_from(&from).steered, u64::from(TOGETHER));
}
