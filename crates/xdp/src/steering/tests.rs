//! The program, run by the kernel on packets that we hand to it (`BPF_PROG_TEST_RUN`). Needs root.
//! Without it, these tests say so and pass; with `DUNLIN_NO_SKIP=1` they fail instead.

use dunlin_testkit::network::Network;
use dunlin_testkit::wait::until;

use super::*;
use crate::device::Device;
use crate::socket::{Copying, Host, Socket, bound_host};
use crate::umem::{MIN_FRAMES, Umem};
use dunlin_packet::check::{homes, peer_of, written};

const PASS: u32 = 2;
const REDIRECT: u32 = 4;

/// Numbers of sockets. For the addresses of [`homes`] at queue 0, the program looks at `CHOSEN`
/// first.
const CHOSEN: u32 = 7000 % 256;
const OTHER: u32 = 3;

/// A program that steers the first endpoints to a socket, in a network of their own.
struct Steered {
    steering: Steering,
    _socket: (Host, Socket),
    _network: Network,
}

/// Opens the only socket of an endpoint at a queue.
fn open(index: u32, queue: u32) -> io::Result<(Host, Socket)> {
    let umem = Umem::new(MIN_FRAMES).unwrap();
    let fd = bound_host(index, queue, &umem, Copying::Frames)?;
    let (host, _) = Host::of(fd, index, queue, umem)?;
    let (socket, _) = Socket::open(&host, MIN_FRAMES / 2)?;
    Ok((host, socket))
}

/// A program that steers these addresses, at this queue, to the socket with this number. `None` if
/// the test is skipped.
fn steered_to(number: u32, homes: &[Home], queue: u32) -> Option<Steered> {
    let network = Network::new()?;
    let (steering, socket) = network.left.run(|| {
        let steering = Steering::load().unwrap();
        let index = ffi::interface_index(c"link0").unwrap();
        let socket = open(index, 0).unwrap();
        steering.set_socket(number, socket.1.fd().unwrap()).unwrap();
        (steering, socket)
    });
    for home in homes {
        steering.steer(home, number, queue, 0).unwrap();
    }
    Some(Steered {
        steering,
        _socket: socket,
        _network: network,
    })
}

/// Like [`steered_to`], at both kinds of numbers.
fn steered(homes: &[Home], queue: u32) -> impl Iterator<Item = Steered> {
    let numbers = [CHOSEN, OTHER].into_iter();
    numbers.filter_map(move |number| steered_to(number, homes, queue))
}

impl Steered {
    /// The program's decision about a packet.
    fn verdict(&self, packet: &[u8]) -> u32 {
        let mut attributes = [0; 10];
        let len = u32::try_from(packet.len()).unwrap();
        attributes[0] = pair(self.steering.program.as_raw_fd().cast_unsigned(), 0);
        attributes[1] = pair(len, 0);
        attributes[2] = packet.as_ptr() as u64;
        // SAFETY: the packet is read, and nothing is asked back but numbers.
        unsafe { ffi::bpf(10, &mut attributes) }.unwrap();
        u32::from_ne_bytes(*attributes[0].to_ne_bytes().last_chunk().unwrap())
    }
}

fn good(home: &Home) -> Vec<u8> {
    let sender = Home {
        address: peer_of(home),
        ..*home
    };
    written(&sender, home, b"some bytes of a packet")
}

#[test]
fn packets_of_steered_endpoints_go_to_the_socket_and_no_others() {
    for some in [
        &homes()[..0],
        &homes()[..1],
        &homes()[1..2],
        &homes()[2..3],
        &homes()[3..],
    ] {
        for steered in steered(some, 0) {
            for home in homes() {
                let wanted = if some.contains(&home) { REDIRECT } else { PASS };
                let verdict = steered.verdict(&good(&home));
                assert_eq!(verdict, wanted, "{home:?} of {some:?}");
            }
        }
    }
}

#[test]
fn everything_but_a_whole_plain_datagram_passes() {
    steered(&homes(), 0).for_each(|steered| check_plain(&steered));
}

fn check_plain(steered: &Steered) {
    let changed = |home: usize, at: usize, value: u8| {
        let mut packet = good(&homes()[home]);
        assert_ne!(packet[at], value);
        packet[at] = value;
        steered.verdict(&packet)
    };
    for (home, ip) in [(0, 14), (1, 18)] {
        assert_eq!(changed(home, ip, 0x46), PASS, "options");
        assert_eq!(changed(home, ip, 0x55), PASS, "version 5");
        assert_eq!(changed(home, ip + 6, 0x60), PASS, "the first fragment");
        assert_eq!(changed(home, ip + 7, 1), PASS, "a later fragment");
        assert_eq!(changed(home, ip + 6, 0x1F), PASS, "the last fragment");
        assert_eq!(changed(home, ip + 9, 6), PASS, "TCP");
        assert_eq!(changed(home, ip + 19, 9), PASS, "another address");
        assert_eq!(changed(home, ip + 22, 9), PASS, "another port");
        assert_eq!(changed(home, ip + 1, 3), REDIRECT, "a mark of congestion");
    }
    for (home, ip) in [(2, 14), (3, 18)] {
        assert_eq!(changed(home, ip, 0x70), PASS, "version 7");
        assert_eq!(changed(home, ip + 6, 44), PASS, "a fragment");
        assert_eq!(changed(home, ip + 6, 0), PASS, "an extension");
        assert_eq!(changed(home, ip + 39, 9), PASS, "another address");
        assert_eq!(changed(home, ip + 24, 9), PASS, "another address");
        assert_eq!(changed(home, ip + 42, 9), PASS, "another port");
        assert_eq!(changed(home, ip, 0x6B), REDIRECT, "a traffic class");
    }
    for home in [1, 3] {
        assert_eq!(changed(home, 15, 6), PASS, "another VLAN");
        assert_eq!(changed(home, 14, 0xE0), REDIRECT, "a priority");
        assert_eq!(changed(home, 13, 6), PASS, "ARP");
    }
    for home in homes() {
        let packet = good(&home);
        let headers = packet.len() - b"some bytes of a packet".len();
        for len in 14..headers {
            assert_eq!(steered.verdict(&packet[..len]), PASS, "cut after {len}");
        }
    }
}

#[test]
fn packets_of_another_queue_pass() {
    for steered in steered(&homes()[..1], 1) {
        assert_eq!(steered.verdict(&good(&homes()[0])), PASS);
    }
}

#[test]
fn released_endpoints_and_gone_sockets_get_nothing() {
    for steered in steered(&homes()[..2], 0) {
        let [one, two, ..] = homes();
        assert_eq!(steered.verdict(&good(&one)), REDIRECT);
        // The entry of the preferred number may name the second address. Its release empties the
        // entry, and the program finds the first address in the map of all addresses.
        assert!(steered.steering.release(&two, 0, 0));
        assert!(!steered.steering.release(&two, 0, 0));
        assert_eq!(steered.verdict(&good(&two)), PASS);
        assert_eq!(steered.verdict(&good(&one)), REDIRECT);
        // The map does not keep a socket alive.
        let Steered {
            steering,
            _socket,
            _network,
        } = steered;
        drop(_socket);
        let other = _network.left.run(|| {
            let index = ffi::interface_index(c"link0").unwrap();
            open(index, 0).unwrap()
        });
        let steered = Steered {
            steering,
            _socket: other,
            _network,
        };
        assert_eq!(steered.verdict(&good(&one)), PASS);
    }
}

#[test]
fn an_address_left_by_a_killed_process_is_steered_to_the_new_number() {
    let home = homes()[0];
    let Some(steered) = steered_to(OTHER, &[], 0) else {
        return;
    };
    steered.steering.steer(&home, CHOSEN, 0, 7).unwrap();
    assert_eq!(steered.verdict(&good(&home)), PASS, "no socket is there");
    steered.steering.steer(&home, OTHER, 0, 8).unwrap();
    assert_eq!(steered.verdict(&good(&home)), REDIRECT);
}

#[test]
fn a_socket_gets_the_number_where_the_program_looks_first_or_the_next_free_one() {
    let Some(network) = Network::new() else {
        return;
    };
    network.left.run(|| {
        let steering = Steering::load().unwrap();
        let index = ffi::interface_index(c"link0").unwrap();
        let (host, first) = open(index, 0).unwrap();
        let [(second, _), (third, _)] =
            [(); 2].map(|()| Socket::open(&host, MIN_FRAMES / 2).unwrap());
        let add = |socket: &Socket, queue| {
            let fd = socket.fd().unwrap();
            steering.add_socket(fd, &homes()[0], queue).unwrap()
        };
        assert_eq!(add(&first, 0), CHOSEN);
        assert_eq!(add(&second, 0), CHOSEN + 1);
        let last = u32::MAX - CHOSEN;
        assert_eq!(add(&second, last), 255);
        assert_eq!(add(&third, last), 0, "the numbers go round");
    });
}

#[test]
fn a_number_without_an_address_gets_no_packet() {
    let nowhere = Home {
        address: "[::]:0".parse().unwrap(),
        ..homes()[2]
    };
    if let Some(steered) = steered_to(0, &[], 0) {
        assert_eq!(steered.verdict(&good(&nowhere)), PASS);
    }
}

#[test]
fn two_keys_with_the_same_preferred_number_are_both_found() {
    let [one, two, ..] = homes();
    let Some(steered) = steered_to(CHOSEN, &[one], 0) else {
        return;
    };
    assert_eq!(steered.verdict(&good(&two)), PASS);
    steered.steering.steer(&two, CHOSEN, 0, 0).unwrap();
    for home in [one, two] {
        assert_eq!(steered.verdict(&good(&home)), REDIRECT);
    }
}

#[test]
fn a_new_socket_gets_no_packets_of_the_last_one_with_its_number() {
    let Some(network) = Network::new() else {
        return;
    };
    network.left.run(|| {
        let steering = Steering::load().unwrap();
        let [left_behind, other, ..] = homes();
        steering.steer(&left_behind, CHOSEN, 0, 7).unwrap();
        steering.steer(&other, OTHER, 0, 7).unwrap();
        let index = ffi::interface_index(c"link0").unwrap();
        let socket = open(index, 0).unwrap();
        let fd = socket.1.fd().unwrap();
        assert_eq!(steering.add_socket(fd, &other, 0).unwrap(), CHOSEN);
        assert!(!steering.release(&left_behind, 0, 7));
        assert!(steering.release(&other, 0, 7));
    });
}

#[test]
fn addresses_of_the_dead_are_removed_and_no_others() {
    let Some(_network) = Network::new() else {
        return;
    };
    let steering = Steering::load().unwrap();
    let all = homes();
    for (home, owner) in all.iter().zip([1, 2, 3]) {
        steering.steer(home, 0, 0, owner).unwrap();
    }
    // Each reading misses one socket that is open.
    let readings = std::cell::RefCell::new(vec![vec![1, 3], vec![2, 3]]);
    let living = || Ok(readings.borrow_mut().pop().unwrap());
    assert_eq!(steering.forget_dead(living).unwrap(), 0);
    // The first address gets another owner after the readings.
    let heir = std::cell::Cell::new(10);
    let living = || {
        heir.set(heir.get() + 1);
        steering.steer(&all[0], 0, 0, heir.get()).unwrap();
        Ok(vec![3])
    };
    assert_eq!(steering.forget_dead(living).unwrap(), 1);
    let owners = all.iter().zip([heir.get(), 2, 3]);
    let there = owners.map(|(home, owner)| steering.release(home, 0, owner));
    assert_eq!(there.collect::<Vec<_>>(), [true, false, true]);
}

#[test]
fn an_interface_has_one_program_which_goes_with_its_link() {
    let Some(network) = Network::new() else {
        return;
    };
    for mode in [Mode::Generic, Mode::Native] {
        network.left.run(|| {
            let index = ffi::interface_index(c"link0").unwrap();
            let first = Steering::load().unwrap();
            first.attach(index, mode).unwrap();
            let second = Steering::load().unwrap();
            let refused = second.attach(index, mode).unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::ResourceBusy, "{refused}");
            drop(first);
            second.attach(index, mode).unwrap();
        });
        until(|| network.left.xdp_programs() == 0);
    }
}

#[test]
fn a_missing_interface_and_a_missing_queue_are_named() {
    let Some(network) = Network::new() else {
        return;
    };
    network.left.run(|| {
        assert!(ffi::interface_index(c"link7").is_err());
        let index = ffi::interface_index(c"link0").unwrap();
        let missing = open(index, 900).unwrap_err().to_string();
        assert!(missing.contains("no queue 900"), "{missing}");
        let (_host, first) = open(index, 0).unwrap();
        let taken = open(index, 0).unwrap_err();
        assert_eq!(taken.kind(), io::ErrorKind::ResourceBusy, "{taken}");
        assert!(first.fd().unwrap().as_fd().as_raw_fd() > 0);
    });
}

#[test]
fn an_address_that_has_another_owner_by_now_is_not_released() {
    let home = homes()[0];
    for steered in steered(&[home], 0) {
        check_owner(&steered, &home);
    }
}

fn check_owner(steered: &Steered, home: &Home) {
    let steering = &steered.steering;
    let socket = steering.homes.get(&key_of(home, 0)).unwrap();
    let socket = u32::from_ne_bytes(*socket.first_chunk().unwrap());
    steering.steer(home, socket, 0, 77).unwrap();
    assert!(!steering.release(home, 0, 76));
    assert_eq!(steered.verdict(&good(home)), REDIRECT);
    assert_eq!(steering.forget_dead(|| Ok(vec![1, 77])).unwrap(), 0);
    assert_eq!(steering.forget_dead(|| Ok(vec![1, 78])).unwrap(), 1);
    assert!(!steering.release(home, 0, 77), "it is gone");
    assert_eq!(steered.verdict(&good(home)), PASS);
}

#[test]
fn an_address_is_claimed_by_one_owner_at_all_queues() {
    let Some(_network) = Network::new() else {
        return;
    };
    let steering = Steering::load().unwrap();
    let [home, other, ..] = homes();
    let claim = |home: &Home, queue, owner| {
        let place = [queue, queue];
        steering.claim(home, place, owner, || Ok(vec![7, 8]))
    };
    claim(&home, 0, 7).unwrap();
    claim(&home, 1, 7).unwrap();
    for queue in [0, 1, 2] {
        let refused = claim(&home, queue, 8).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::ResourceBusy, "{refused}");
    }
    claim(&other, 0, 8).unwrap();
    // The first owner leaves one of its queues, and then the other.
    assert!(steering.release(&home, 0, 7));
    assert!(claim(&home, 0, 8).is_err());
    assert!(steering.release(&home, 1, 7));
    claim(&home, 0, 8).unwrap();
    // An owner that has died keeps no address.
    let living = || Ok(vec![7]);
    steering.claim(&home, [1, 1], 7, living).unwrap();
    assert!(!steering.release(&home, 0, 8), "it is gone");
}
