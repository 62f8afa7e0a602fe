//! Queues of their own for endpoints, at a device that these tests play: no virtual device of DPDK
//! has rules on this kernel. Also the packets of a burst that an endpoint sees together.

use std::collections::VecDeque;
use std::ffi::{c_char, c_int, c_void};
use std::sync::{Arc, MutexGuard};
use std::time::Duration;

use dunlin_core::transport::Rx;
use dunlin_packet::Home;
use dunlin_packet::check::written;
use dunlin_transport::connect::Connect;
use dunlin_wire::{Flags, Header, PacketType, PktNum, ReqNum, SessionNum, Token};

use super::*;
use crate::device::Parts;
use crate::ffi::{Facts, Functions, Tail, Wish};
use crate::open::Dpdk;
use crate::port::Port;
use crate::receive::DpdkRx;

/// Bytes of a packet with its descriptor, and of the descriptor.
const WHOLE: usize = 2048;
const START: u32 = 64;

const MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];
const PORTS: [u16; 3] = [5001, 5002, 5003];

/// The device.
#[derive(Debug)]
struct Played {
    queues: [VecDeque<Vec<u8>>; 3],
    /// The queue and the port of each rule.
    rules: Vec<(u16, u16)>,
    refuses: bool,
    /// Packets that the crate holds.
    held: usize,
}

/// The devices by their numbers, one for each test.
static DEVICES: [Mutex<Played>; 5] = [const {
    Mutex::new(Played {
        queues: [const { VecDeque::new() }; 3],
        rules: Vec::new(),
        refuses: false,
        held: 0,
    })
}; 5];

fn played(number: u16) -> MutexGuard<'static, Played> {
    let device = &DEVICES[usize::from(number)];
    device.lock().unwrap_or_else(PoisonError::into_inner)
}

type Memory = [u8; WHOLE];

/// The number of the device of a pool or of a packet.
fn device_of(memory: *const c_void) -> u16 {
    // SAFETY: the first bytes of both are the number.
    unsafe { memory.cast::<u16>().read_unaligned() }
}

/// A packet with these bytes, as its handle.
fn made(device: u16, bytes: &[u8]) -> *mut c_void {
    let mut memory: Box<Memory> = Box::new([0; WHOLE]);
    memory[..2].copy_from_slice(&device.to_ne_bytes());
    memory[START as usize..][..bytes.len()].copy_from_slice(bytes);
    Box::into_raw(memory).cast()
}

unsafe extern "C" fn receive(
    from: u32,
    handles: *mut *mut c_void,
    _bytes: *mut *mut u8,
    lens: *mut u32,
    most: u32,
    start: *mut u32,
) -> u32 {
    let device = u16::try_from(from & 0xffff).unwrap();
    let queue = (from >> 16) as usize;
    let mut played = played(device);
    let mut count = 0;
    while count < most
        && let Some(packet) = played.queues[queue].pop_front()
    {
        // SAFETY: the arrays have room for `most` packets.
        unsafe {
            *handles.add(count as usize) = made(device, &packet);
            *lens.add(count as usize) = u32::try_from(packet.len()).unwrap();
            *start = START;
        }
        played.held += 1;
        count += 1;
    }
    count
}

unsafe extern "C" fn free(handles: *const *mut c_void, count: u32, _mixed: u32) {
    for at in 0..count as usize {
        // SAFETY: `made` made the packet, and nothing uses it any longer.
        let memory = unsafe { Box::from_raw((*handles.add(at)).cast::<Memory>()) };
        played(device_of(memory.as_ptr().cast())).held -= 1;
    }
}

unsafe extern "C" fn take(pool: *mut c_void, handles: *mut *mut c_void, count: u32) -> u32 {
    let device = device_of(pool);
    played(device).held += count as usize;
    for at in 0..count as usize {
        // SAFETY: the array has room for `count` packets.
        unsafe { *handles.add(at) = made(device, &[]) };
    }
    count
}

unsafe extern "C" fn send(
    _device: u16,
    handles: *const *mut c_void,
    _lens: *const u32,
    _tails: *const Tail,
    count: u32,
) -> u32 {
    // SAFETY: as for `free`.
    unsafe { free(handles, count, 1) };
    count
}

unsafe extern "C" fn steer(
    device: u16,
    queue: u16,
    address: *const u8,
    number: u16,
) -> *mut c_void {
    // SAFETY: an address has 16 bytes.
    let address = unsafe { std::slice::from_raw_parts(address, 16) };
    assert_eq!(
        address,
        [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 10, 0, 0, 1]
    );
    let mut played = played(device);
    if played.refuses {
        return std::ptr::null_mut();
    }
    played.rules.push((queue, number));
    std::ptr::without_provenance_mut(usize::from(queue))
}

unsafe extern "C" fn unsteer(device: u16, rule: *mut c_void) {
    let queue = rule.addr();
    played(device)
        .rules
        .retain(|rule| usize::from(rule.0) != queue);
}

unsafe extern "C" fn version() -> u32 {
    0
}

unsafe extern "C" fn start(_: c_int, _: *mut *mut c_char, _: c_int) -> c_int {
    unreachable!("a device that is played is open")
}

unsafe extern "C" fn open(
    _: *const c_char,
    _: *const c_char,
    _: *const Wish,
    _: *mut Facts,
) -> c_int {
    unreachable!("a device that is played is open")
}

unsafe extern "C" fn share(_: u16, _: *mut c_void, _: usize, _: c_int) -> c_int {
    0
}

unsafe extern "C" fn ask(_: u16) {}

unsafe extern "C" fn listen(_: u16, _: u16, _: c_int, _: c_int) {}

unsafe extern "C" fn drops(_: u16, _: *mut [u64; 4]) {}

unsafe extern "C" fn is_up(_: u16) -> c_int {
    1
}

unsafe extern "C" fn empty(_: *const c_void) -> u32 {
    0
}

pub(crate) static FUNCTIONS: Functions = Functions {
    version,
    start,
    open,
    receive,
    take,
    send,
    share,
    free,
    ask,
    listen,
    drops,
    is_up,
    empty,
    steer,
    unsteer,
};

/// Opens a device with two queues for rules.
fn port(device: u16, refuses: bool) -> &'static Port {
    played(device).refuses = refuses;
    let facts = Facts {
        pool: made(device, &[]),
        bytes_per_second: 0,
        room: 1600,
        start: START,
        rx_descriptors: 64,
        bell: -1,
        port: device,
        mtu: 1500,
        queues: 3,
        mac: MAC,
        answers: 0,
        lends: 0,
    };
    let site = "net_played0;ip=10.0.0.1/24,queues=3".parse().unwrap();
    Box::leak(Box::new(Port::new(site, Parts::played(&FUNCTIONS, facts))))
}

fn endpoint(port: &'static Port, number: u16) -> DpdkRx {
    DpdkRx::new(Arc::new(port.seat(number).unwrap()))
}

/// Makes a datagram arrive for a port at a queue.
fn arrive(device: u16, queue: usize, number: u16, payload: &[u8]) {
    let home = |address: &str, mac| Home {
        address: address.parse().unwrap(),
        vlan: 0,
        mac,
    };
    let sender = home("10.0.0.2:7000", [2, 0, 0, 0, 0, 2]);
    let mut receiver = home("10.0.0.1:0", MAC);
    receiver.address.set_port(number);
    let frame = written(&sender, &receiver, payload);
    played(device).queues[queue].push_back(frame);
}

/// The payloads of the next burst.
fn burst(rx: &mut DpdkRx) -> Vec<Vec<u8>> {
    let count = rx.burst();
    (0..count).map(|at| rx.frame(at).bytes.to_vec()).collect()
}

/// A counter of the device.
fn count(rx: &DpdkRx, name: &str) -> u64 {
    let details = rx.details();
    details.iter().find(|it| it.0 == name).unwrap().1
}

#[test]
fn each_endpoint_gets_a_queue_as_long_as_queues_are_left() {
    let port = port(0, false);
    let mut endpoints = PORTS.map(|number| endpoint(port, number));
    assert_eq!(played(0).rules, [(1, PORTS[0]), (2, PORTS[1])]);
    let [first, second, third] = &mut endpoints;
    assert_eq!(count(third, "rx_rules"), 2);
    assert_eq!(count(third, "rx_rules_refused"), 1);
    for (queue, number) in [(1, PORTS[0]), (2, PORTS[1]), (0, PORTS[2])] {
        arrive(0, queue, number, &number.to_le_bytes());
    }
    // Packets of a queue are its owner's alone, and the endpoint without one has the shared queue.
    assert_eq!(burst(third), [PORTS[2].to_le_bytes()]);
    assert_eq!(burst(third), <[Vec<u8>; 0]>::default());
    assert_eq!(burst(second), [PORTS[1].to_le_bytes()]);
    assert_eq!(burst(first), [PORTS[0].to_le_bytes()]);
    // A packet that came before the rule, and one to the queue.
    arrive(0, 0, PORTS[0], b"shared");
    arrive(0, 1, PORTS[0], b"own");
    assert_eq!(burst(first), [b"own"]);
    assert_eq!(burst(first), [b"shared"]);
    // The next endpoint gets the queue and the rule of one that has ended.
    let [first, second, third] = endpoints;
    drop(first);
    assert_eq!(played(0).rules, [(2, PORTS[1])]);
    arrive(0, 1, PORTS[0], b"late");
    let mut next = endpoint(port, 5004);
    assert_eq!(played(0).rules, [(2, PORTS[1]), (1, 5004)]);
    assert_eq!(burst(&mut next), <[Vec<u8>; 0]>::default());
    assert_eq!(count(&next, "rx_unknown_port"), 1);
    drop((second, third, next));
    // The port takes packets for its reserve 32 at a time.
    assert_eq!(played(0).held, 32);
}

#[test]
fn the_keeper_looks_at_the_queue_of_an_endpoint_that_does_not() {
    let port = port(1, false);
    let mut busy = endpoint(port, PORTS[0]);
    let mut other = endpoint(port, PORTS[1]);
    for rx in [&mut busy, &mut other] {
        assert_eq!(burst(rx), <[Vec<u8>; 0]>::default());
    }
    arrive(1, 1, PORTS[0], b"a packet");
    // The endpoint has polled just now. Only the second look finds that it has not polled since the
    // first one.
    port.on_time(1);
    assert_eq!(played(1).queues[1].len(), 1);
    assert!(port.on_time(2));
    assert_eq!(played(1).queues[1].len(), 0);
    // Another endpoint polls, but not this queue.
    arrive(1, 1, PORTS[0], b"another");
    assert_eq!(burst(&mut other), <[Vec<u8>; 0]>::default());
    port.on_time(3);
    assert_eq!(burst(&mut busy), [&b"a packet"[..], b"another"]);
    // A sleeper's queue is looked at soon, and by each endpoint that is going to sleep.
    assert_eq!(burst(&mut busy), <[Vec<u8>; 0]>::default());
    busy.sleep();
    arrive(1, 1, PORTS[0], b"for a sleeper");
    port.on_time(4);
    assert_eq!(played(1).queues[1].len(), 0);
    arrive(1, 1, PORTS[0], b"for a sleeper");
    port.look_for_all();
    assert_eq!(played(1).queues[1].len(), 0);
    busy.wake();
    assert_eq!(burst(&mut busy).len(), 2);
}

#[test]
fn an_endpoint_that_wakes_looks_at_the_queues_of_endpoints_that_still_sleep() {
    let port = port(3, false);
    let mut woken = endpoint(port, PORTS[0]);
    let mut sleeper = endpoint(port, PORTS[1]);
    // A device without a bell, at which an endpoint looks for long before it sleeps.
    assert_eq!(Dpdk::least_spin(&woken), Duration::from_millis(2));
    for rx in [&mut woken, &mut sleeper] {
        assert!(rx.seat().inbox.sleep());
        rx.sleep();
    }
    // The device wakes another endpoint than the receiver for this packet, and rings once only.
    arrive(3, 2, PORTS[1], b"for the sleeper");
    woken.wake();
    assert_eq!(played(3).queues[2].len(), 0);
    assert!(!sleeper.seat().inbox.is_asleep(), "it was woken");
    sleeper.wake();
    assert_eq!(burst(&mut sleeper), [b"for the sleeper"]);
    // While one endpoint is awake, the device rings for no packet. So an endpoint that wakes looks
    // at the other queues, and finds this one.
    woken.sleep();
    arrive(3, 2, PORTS[1], b"for one awake");
    woken.wake();
    assert_eq!(played(3).queues[2].len(), 1);
    assert_eq!(burst(&mut sleeper), [b"for one awake"]);
}

#[test]
fn a_device_that_refuses_a_rule_serves_all_from_the_shared_queue() {
    let port = port(2, true);
    let mut endpoints = PORTS.map(|number| endpoint(port, number));
    for number in PORTS {
        arrive(2, 0, number, &number.to_le_bytes());
    }
    for (rx, number) in endpoints.iter_mut().zip(PORTS) {
        assert_eq!(burst(rx), [number.to_le_bytes()]);
    }
    let [first, ..] = &endpoints;
    assert_eq!(count(first, "rx_rules"), 0);
    assert_eq!(count(first, "rx_rules_refused"), 3);
}

/// A datagram of `len` bytes that begins with a packet of a message of `size` bytes, and ends with
/// a number.
fn datagram(len: usize, size: u32, number: u8) -> Vec<u8> {
    let header = Header {
        kind: PacketType::Req,
        flags: Flags::NONE,
        aux: 1,
        session: SessionNum(1),
        token: Token(1),
        size,
        pkt: PktNum(0),
        req: ReqNum(0),
    };
    let mut bytes = header.encode().to_vec();
    bytes.resize(len, number);
    bytes
}

#[test]
fn a_few_datagrams_with_several_messages_are_shown_in_halves() {
    let mut rx = endpoint(port(4, true), PORTS[0]);
    let mut shown = |count: u8, len: usize, size: u32| {
        for number in 0..count {
            arrive(4, 0, PORTS[0], &datagram(len, size, number));
        }
        let (mut bursts, mut numbers) = (Vec::new(), 0..);
        loop {
            let burst = burst(&mut rx);
            if burst.is_empty() {
                return bursts;
            }
            for (packet, index) in burst.iter().zip(0..) {
                assert_eq!(*packet, datagram(len, size, numbers.next().unwrap()));
                assert_eq!(rx.whole(index), Some(&packet[..]), "it is not marked");
            }
            let row: Vec<&[u8]> = rx.lined_up(0).collect();
            assert!(row.len() <= burst.len(), "the row ends with the burst");
            assert!(burst.iter().zip(&row).all(|(packet, it)| packet == it));
            bursts.push(burst.len());
        }
    };
    assert_eq!(shown(1, 1400, 32), [1]);
    assert_eq!(shown(5, 1400, 32), [3, 2]);
    assert_eq!(shown(8, 256, 104), [4, 4]);
    // An iteration of its own costs too much for half of many datagrams, or of small ones.
    assert_eq!(shown(9, 256, 32), [9]);
    assert_eq!(shown(5, 255, 32), [5]);
    // Packets of large messages, and datagrams that hold hardly more than one message.
    assert_eq!(shown(5, 1400, 1_000_000), [5]);
    assert_eq!(shown(8, 256, 105), [8]);
    // Each packet is counted once. All go back to the pool with the next question to the device.
    assert_eq!(rx.counters().rx_packets, 1 + 5 + 8 + 9 + 5 + 5 + 8);
    for number in [7, 8] {
        arrive(4, 0, PORTS[0], &datagram(1400, 32, number));
    }
    let before = rx.counters().rx_packets;
    assert_eq!(burst(&mut rx), [datagram(1400, 32, 7)]);
    assert!(rx.has_rest());
    assert_eq!(
        rx.counters().rx_packets,
        before + 1,
        "the other is not shown"
    );
    assert_eq!(burst(&mut rx), [datagram(1400, 32, 8)]);
    assert!(!rx.has_rest());
    assert_eq!(burst(&mut rx), <[Vec<u8>; 0]>::default());
}
