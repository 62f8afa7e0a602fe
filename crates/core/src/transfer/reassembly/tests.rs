//! Reassembly alone: packets in any order, budgets, and the content of a CR.

use dunlin_msgbuf::{Pool, PoolConfig};
use dunlin_wire::{Flags, PacketType, ReqNum, SessionNum, Token};

use super::*;

const SIZE: u32 = 30;
const DATA_SIZE: usize = 10;
const REQUEST: RequestIdx = RequestIdx(3);

fn pool() -> Pool {
    Pool::new(PoolConfig::default()).expect("memory for a pool")
}

fn packet(number: u32, size: u32) -> Header {
    Header {
        kind: PacketType::Req,
        flags: Flags::NONE,
        aux: 0,
        session: SessionNum(0),
        token: Token(0),
        size,
        pkt: PktNum(number),
        req: ReqNum(0),
    }
}

fn byte_of(number: u32) -> u8 {
    (number % 251) as u8
}

/// Gives packet `number`, filled with its own number, to the request at `place`.
fn give(reassembly: &mut Reassembly, place: AssemblyIdx, number: u32) -> Result<Taken, DropReason> {
    let data = [byte_of(number); DATA_SIZE];
    let header = packet(number, SIZE);
    reassembly.take(place, &header, Data::Here(&data), DATA_SIZE, number == 1)
}

fn begun(pool: &mut Pool) -> (Reassembly, AssemblyIdx) {
    let mut reassembly = Reassembly::default();
    let message = pool.alloc(SIZE as usize).expect("memory");
    let place = reassembly.begin(SessionIdx(7), 3, SIZE, message);
    (reassembly, place)
}

#[test]
fn packets_in_any_order_make_the_message() {
    let mut pool = pool();
    let (mut reassembly, place) = begun(&mut pool);
    assert_eq!(give(&mut reassembly, place, 2), Ok(Taken::New));
    assert_eq!(give(&mut reassembly, place, 0), Ok(Taken::New));
    assert_eq!(give(&mut reassembly, place, 2), Ok(Taken::Again));
    assert_eq!(give(&mut reassembly, place, 1), Ok(Taken::Last));
    let message = reassembly.end(place, SessionIdx(7)).expect("the message");
    let expected: Vec<u8> = (0..3).flat_map(|number| [number; DATA_SIZE]).collect();
    assert_eq!(message.data(), expected);
}

#[test]
fn a_packet_that_does_not_fit_its_request_is_refused_and_changes_nothing() {
    let mut pool = pool();
    let (mut reassembly, place) = begun(&mut pool);
    let other = packet(0, SIZE + 1);
    let data = Data::Here(&[0; DATA_SIZE]);
    let refused = reassembly.take(place, &other, data, DATA_SIZE, false);
    assert_eq!(refused, Err(DropReason::Size));
    let far = give(&mut reassembly, place, 3 + dunlin_wire::MAX_AHEAD);
    assert_eq!(far, Err(DropReason::PacketNumber));
    assert!(reassembly.take_credit_return(place).is_none());
}

#[test]
fn one_credit_return_reports_all_packets_of_a_burst() {
    let mut pool = pool();
    let (mut reassembly, place) = begun(&mut pool);
    for number in [0, 0, 1] {
        give(&mut reassembly, place, number).expect("the packet fits");
        reassembly.on_credit_due(place, REQUEST);
    }
    assert_eq!(reassembly.pop_pending(), Some(REQUEST));
    assert_eq!(
        reassembly.pop_pending(),
        None,
        "one CR is due for all three packets"
    );
    let due = reassembly.take_credit_return(place).expect("a CR is due");
    assert_eq!((due.cumulative, due.trigger), (PktNum(2), PktNum(1)));
    assert!(due.congestion && due.duplicate);
    assert!(reassembly.take_credit_return(place).is_none());
}

#[test]
fn budgets_count_partly_arrived_requests() {
    let mut pool = pool();
    let config = Config {
        session_receive_budget: 50,
        receive_budget: 70,
        ..Config::default()
    };
    let (mut reassembly, place) = begun(&mut pool);
    assert!(reassembly.has_room(SessionIdx(7), 20, &config));
    assert!(
        !reassembly.has_room(SessionIdx(7), 21, &config),
        "the session's budget is too small"
    );
    assert!(reassembly.has_room(SessionIdx(8), 40, &config));
    assert!(
        !reassembly.has_room(SessionIdx(8), 41, &config),
        "the endpoint's budget is too small"
    );
    reassembly.end(place, SessionIdx(7));
    assert_eq!(
        (reassembly.bytes(), reassembly.bytes_of(SessionIdx(7))),
        (0, 0)
    );
    reassembly.forget_session(SessionIdx(7));
    assert!(reassembly.has_room(SessionIdx(7), 50, &config));
}

#[test]
fn a_wrong_sum_of_bytes_or_requests_is_found() {
    let mut pool = pool();
    let (mut reassembly, _) = begun(&mut pool);
    assert!(reassembly.is_sum_right());
    reassembly.bytes += 1;
    assert!(!reassembly.is_sum_right(), "the endpoint's sum is wrong");
    *reassembly.bytes_of.get_or_insert(SessionIdx(8), 0) += 1;
    assert!(!reassembly.is_sum_right(), "the requests' sum is wrong");
    *reassembly.bytes_of.get_or_insert(SessionIdx(8), 0) -= 1;
    reassembly.bytes -= 1;
    assert!(reassembly.is_sum_right());
    reassembly.assemblies.take();
    assert!(
        !reassembly.is_sum_right(),
        "the number of requests is wrong"
    );
}

#[test]
fn the_loop_is_needed_for_a_credit_return_and_for_a_complete_request() {
    let mut pool = pool();
    let (mut reassembly, place) = begun(&mut pool);
    assert!(!reassembly.is_waiting());
    reassembly.on_credit_due(place, REQUEST);
    assert!(reassembly.is_waiting());
    assert_eq!(reassembly.pop_pending(), Some(REQUEST));
    assert!(!reassembly.is_waiting());
    let message = reassembly.end(place, SessionIdx(7)).expect("the message");
    reassembly.on_complete(REQUEST, message);
    assert!(reassembly.is_waiting());
}
