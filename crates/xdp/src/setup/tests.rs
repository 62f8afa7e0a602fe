//! The daemon's decisions about connections, without processes and users of their own. Needs root.

use std::cell::Cell;
use std::io::Read;
use std::net::UdpSocket;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use dunlin_testkit::network::Network;
use dunlin_testkit::wait::until;

use super::rules::Rules;
use super::rules::tests::{How, Played};
use super::*;
use crate::ask::exchange;
use crate::ask::message::{Claim, QueueId, Request, Wish};
use crate::ffi::{self, descriptors};
use crate::queue::{Access, Interface};
use crate::steering::Mode;
use crate::umem::{FRAME, MIN_FRAMES};
use dunlin_packet::Home;

/// The sentences of a daemon for its operator.
type Notes = Arc<Mutex<Vec<String>>>;

/// A daemon that grants this user the ports 100 to 199 at queue 0 of `link0`, and makes rules at
/// this device if the table permits it.
fn daemon(ip: &str, device: Arc<Played>, rules: bool, notes: &Notes) -> Arc<Daemon> {
    let grant = Grant {
        user: descriptors::user(),
        interface: "link0".to_owned(),
        vlan: 0,
        mode: Mode::Generic,
        addresses: vec![ip.parse().unwrap()],
        ports: 100..=199,
        queues: 0..=0,
        umem_bytes: u64::from(MIN_FRAMES) * FRAME as u64,
        rules,
    };
    let (table, notes) = (Table::new(vec![grant]).unwrap(), notes.clone());
    let note = move |said: &str| notes.lock().unwrap().push(said.to_owned());
    Daemon::with_rules(table, Rules::over(device), note)
}

/// A process that asks, in its network namespace.
struct Asker {
    daemon: Arc<Daemon>,
    place: QueueId,
    /// The fate of the rule in the last answer.
    rule: Cell<Option<bool>>,
    notes: Notes,
}

impl Asker {
    fn new(ip: &str) -> Self {
        Self::at(ip, Played::new(How::Refuses), true)
    }

    /// With rules at this device, if the table permits them.
    fn at(ip: &str, device: Arc<Played>, rules: bool) -> Self {
        let place = QueueId {
            namespace: ffi::network_namespace().unwrap(),
            index: ffi::interface_index(c"link0").unwrap(),
            queue: 0,
            mode: Mode::Generic,
        };
        let notes = Notes::default();
        Self {
            daemon: daemon(ip, device, rules, &notes),
            place,
            rule: Cell::new(None),
            notes,
        }
    }

    /// Asks over a connection of its own, which it returns.
    fn ask(&self, wish: Wish, with: &OwnedFd) -> std::io::Result<(OwnedFd, UnixStream)> {
        self.ask_at(self.place, wish, with)
    }

    fn ask_at(
        &self,
        place: QueueId,
        wish: Wish,
        with: &OwnedFd,
    ) -> std::io::Result<(OwnedFd, UnixStream)> {
        let (near, far) = UnixStream::pair().unwrap();
        self.daemon.begin(far).unwrap();
        let (socket, rule) = exchange(&near, Request { place, wish }, with.as_fd())?;
        self.rule.set(rule);
        Ok((socket, near))
    }

    fn queue(&self) -> OwnedFd {
        self.try_queue().unwrap()
    }

    fn try_queue(&self) -> std::io::Result<OwnedFd> {
        let memory = ffi::memory::sealed(u64::from(MIN_FRAMES) * FRAME as u64)?;
        let wish = Wish::Queue { frames: MIN_FRAMES };
        Ok(self.ask(wish, &memory)?.0)
    }
}

/// Runs a test in the left host of a network, with an address there.
fn in_network(test: impl FnOnce(&Network, &'static str) + Send) {
    if let Some(network) = Network::new() {
        network.left.run(|| test(&network, network.left.address));
    }
}

/// Runs a test in a network, with a socket at port 100 of the left host, and a queue that this
/// asker got there.
fn with_queue(
    asker: impl FnOnce(&'static str) -> Asker + Send,
    test: impl FnOnce(&Network, &Asker, &OwnedFd, &UdpSocket) + Send,
) {
    in_network(|network, ip| {
        let asker = asker(ip);
        let host = asker.queue();
        let udp = UdpSocket::bind((ip, 100)).unwrap();
        test(network, &asker, &host, &udp);
    });
}

/// The wish for packets of a UDP socket.
fn endpoint(of: &UdpSocket) -> Wish {
    Wish::Endpoint {
        entries: 64,
        claim: Claim {
            address: of.local_addr().unwrap(),
            vlan: 0,
            owner: ffi::number_of_file(of.as_raw_fd()).unwrap(),
        },
    }
}

#[test]
fn an_address_is_claimed_once_until_its_connection_ends() {
    with_queue(Asker::new, |network, asker, host, udp| {
        let (_socket, connection) = asker.ask(endpoint(udp), host).unwrap();
        assert_eq!(network.left.xdp_programs(), 1);
        // Another endpoint says that the address is its own.
        let other = UdpSocket::bind((network.left.address, 101)).unwrap();
        let Wish::Endpoint { entries, mut claim } = endpoint(udp) else {
            unreachable!()
        };
        claim.owner = ffi::number_of_file(other.as_raw_fd()).unwrap();
        let again = Wish::Endpoint { entries, claim };
        let refused = asker.ask(again, host).map(|_| ()).unwrap_err();
        assert_eq!(refused.kind(), std::io::ErrorKind::ResourceBusy);
        assert!(
            refused.to_string().contains("another endpoint"),
            "{refused}"
        );
        drop(connection);
        until(|| network.left.xdp_programs() == 0);
        let (_socket, connection) = asker.ask(again, host).unwrap();
        drop(connection);
        until(|| network.left.xdp_programs() == 0);
    });
}

#[test]
fn the_program_of_a_daemon_is_offered_to_no_process() {
    in_network(|network, ip| {
        let asker = Asker::new(ip);
        let host = asker.queue();
        let udp = UdpSocket::bind((ip, 100)).unwrap();
        let index = asker.place.index;
        let offered = || {
            let deadline = Instant::now() + Duration::from_secs(1);
            crate::sharing::adopt(index, deadline).is_some()
        };
        let granted = asker.ask(endpoint(&udp), &host).unwrap();
        assert_eq!(network.left.xdp_programs(), 1);
        assert!(!offered());
        let other = Interface::get(index, Mode::Generic, Access::OfUser);
        assert!(other.is_err(), "the daemon's program is not for endpoints");
        drop((granted, host));
        until(|| network.left.xdp_programs() == 0);
        // A process offers its program.
        let shared = Interface::get(index, Mode::Generic, Access::OfUser).unwrap();
        assert!(offered());
        drop(shared);
    });
}

#[test]
fn a_closed_socket_keeps_its_number_until_its_connection_ends() {
    with_queue(Asker::new, |_, asker, host, udp| {
        let (socket, connection) = asker.ask(endpoint(udp), host).unwrap();
        let interface = Interface::get(asker.place.index, Mode::Generic, Access::Alone).unwrap();
        let number = || {
            let steering = interface.steering().unwrap();
            let home = Home {
                address: udp.local_addr().unwrap(),
                vlan: 0,
                mac: [0; 6],
            };
            let number = steering.add_socket(host.as_fd(), &home, 0).unwrap();
            steering.forget_socket(number);
            number
        };
        drop(socket);
        let chosen = u32::from(udp.local_addr().unwrap().port() % 256);
        assert_ne!(number(), chosen, "the endpoint has that number");
        drop(connection);
        until(|| number() == chosen);
    });
}

#[test]
fn a_rule_of_the_device_ends_with_the_connection_or_the_daemon() {
    let device = Played::new(How::Chooses);
    let asker = |ip| Asker::at(ip, device.clone(), true);
    with_queue(asker, |network, asker, host, udp| {
        let rule = vec![(100, udp.local_addr().unwrap().to_string(), 0)];
        let (socket, connection) = asker.ask(endpoint(udp), host).unwrap();
        assert_eq!(asker.rule.get(), Some(true));
        assert_eq!(*asker.notes.lock().unwrap(), Vec::<String>::new());
        assert_eq!(device.shown(), rule);
        // As when the process is killed, which closes both.
        drop((socket, connection));
        until(|| device.shown().is_empty());
        until(|| network.left.xdp_programs() == 0);
        let kept = asker.ask(endpoint(udp), host).unwrap();
        assert_eq!(device.shown(), rule);
        asker.daemon.end();
        assert_eq!(device.shown(), []);
        drop(kept);
        until(|| network.left.xdp_programs() == 0);
    });
}

#[test]
fn an_endpoint_without_a_rule_gets_the_packets_of_its_queue() {
    in_network(|network, ip| {
        // The daemon's copy of a socket may keep its port for a moment, so each has its own.
        for (how, port) in [(How::Refuses, 100), (How::Lies, 101)] {
            let device = Played::new(how);
            let asker = Asker::at(ip, device.clone(), true);
            let host = asker.queue();
            let udp = UdpSocket::bind((ip, port)).unwrap();
            let granted = asker.ask(endpoint(&udp), &host).unwrap();
            assert_eq!(asker.rule.get(), Some(false), "{how:?}");
            let notes = asker.notes.lock().unwrap().concat();
            let said = format!("link0 has no rule for {ip}:{port} at queue 0: ");
            assert!(
                notes.starts_with(&said) && notes.len() > said.len(),
                "{notes}"
            );
            assert_eq!(device.shown(), []);
            assert_eq!(network.left.xdp_programs(), 1);
            drop((granted, host));
            until(|| network.left.xdp_programs() == 0);
        }
        // A device is not asked unless the table says so.
        let device = Played::new(How::Chooses);
        let asker = Asker::at(ip, device.clone(), false);
        let host = asker.queue();
        let udp = UdpSocket::bind((ip, 102)).unwrap();
        let granted = asker.ask(endpoint(&udp), &host).unwrap();
        assert_eq!((asker.rule.get(), device.shown()), (None, Vec::new()));
        drop((granted, host));
        until(|| network.left.xdp_programs() == 0);
        // The kernel's error for a device without rules.
        let refused = rules_of("link0").unwrap_err();
        assert_eq!(refused.kind(), std::io::ErrorKind::Unsupported, "{refused}");
    });
}

#[test]
fn a_queue_is_opened_for_one_request_at_a_time() {
    in_network(|_, ip| {
        let asker = Asker::new(ip);
        let index = asker.place.index;
        let elsewhere = asker.daemon.open_alone(index, 1).unwrap();
        let opening = asker.daemon.open_alone(index, 0).unwrap();
        let refused = asker.try_queue().unwrap_err();
        assert_eq!(refused.kind(), std::io::ErrorKind::ResourceBusy);
        assert!(refused.to_string().contains("is asking"), "{refused}");
        drop(opening);
        asker.queue();
        drop(elsewhere);
    });
}

#[test]
fn a_user_with_too_many_connections_is_refused_without_delay_for_others() {
    let daemon = Daemon::new(Table::new(Vec::new()).unwrap(), |_| ());
    let user = descriptors::user();
    let turns: Vec<_> = (0..daemon::MOST_OF_USER)
        .map(|_| daemon.enter(user).unwrap())
        .collect();
    let (mut near, far) = UnixStream::pair().unwrap();
    daemon.begin(far).unwrap();
    let mut said = Vec::new();
    near.read_to_end(&mut said).unwrap();
    assert!(String::from_utf8_lossy(&said).contains("too many connections"));
    // After an error, the daemon would pause before it accepts others.
    let (near, far) = UnixStream::pair().unwrap();
    drop(near);
    daemon.begin(far).unwrap();
    drop(turns);
    assert!(daemon.enter(user).is_some());
}

#[test]
fn strange_requests_get_a_reason_or_nothing() {
    let Some(network) = Network::new() else {
        return;
    };
    let ip = network.left.address;
    network.left.run(|| {
        let asker = Asker::new(ip);
        let udp = UdpSocket::bind((ip, 100)).unwrap();
        let said = |place, wish, with: &OwnedFd| {
            let refused = asker.ask_at(place, wish, with).map(|_| ());
            refused.unwrap_err().to_string()
        };
        let here = asker.place;
        let elsewhere = QueueId {
            namespace: (1, 1),
            ..here
        };
        let open = ffi::memory::sealed(4096).unwrap();
        let queue = |frames| Wish::Queue { frames };
        assert!(said(elsewhere, queue(MIN_FRAMES), &open).contains("namespace"));
        // The memory is shorter than the request says, or the descriptor is no memory.
        assert!(said(here, queue(MIN_FRAMES), &open).contains("another length"));
        let file: OwnedFd = std::fs::File::open("/proc/self/exe").unwrap().into();
        said(here, queue(MIN_FRAMES), &file);
        assert!(said(here, queue(1), &open).contains("a region of frames"));
        // A descriptor that is not a socket of a queue.
        said(here, endpoint(&udp), &open);
        let Wish::Endpoint { claim, .. } = endpoint(&udp) else {
            unreachable!()
        };
        for entries in [0, u32::MAX] {
            let wish = Wish::Endpoint { entries, claim };
            assert!(said(here, wish, &open).contains("a ring has"));
        }
        // Bytes that are not a request get no answer.
        let (near, far) = UnixStream::pair().unwrap();
        asker.daemon.begin(far).unwrap();
        descriptors::send(near.as_fd(), b"a stranger", &[near.as_fd()]).unwrap();
        assert_eq!((&near).read(&mut [0; 8]).unwrap(), 0);
        assert_eq!(network.left.xdp_programs(), 0);
    });
}
