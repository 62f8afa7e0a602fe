//! Runs, compared with the same packets one by one: both leave the same request.

use dunlin_msgbuf::{Pool, PoolConfig};
use dunlin_wire::{HEADER_LEN, PacketType, PktNum, ReqNum, SessionNum, Token};
use proptest::prelude::*;

use super::*;
use crate::handle::SessionIdx;
use crate::packet::receive::Data;
use crate::transfer::reassembly::Taken;

const SIZE: u32 = 95;
const DATA_SIZE: usize = 10;
const PACKETS: u32 = 10;

fn header(number: u32) -> Header {
    Header {
        kind: PacketType::Req,
        flags: Flags::NONE,
        aux: 7,
        session: SessionNum(3),
        token: Token(4),
        size: SIZE,
        pkt: PktNum(number),
        req: ReqNum(5),
    }
}

/// A frame of the packet with this header, as long as the packet must be.
fn frame(header: &Header) -> Vec<u8> {
    let data = header.data_len(10).unwrap_or(0);
    let byte = u8::try_from(header.pkt.0 % 251).expect("a remainder of 251 fits");
    let mut bytes = header.encode().to_vec();
    bytes.extend((0..data).map(|_| byte));
    bytes
}

fn begun(pool: &mut Pool) -> (Reassembly, AssemblyIdx) {
    let mut reassembly = Reassembly::default();
    let mut message = pool.alloc(SIZE as usize).expect("memory");
    message.data_mut().fill(0xEE);
    let place = reassembly.begin(SessionIdx(7), PACKETS, SIZE, message);
    (reassembly, place)
}

/// The parts of a request that its packets change.
fn state(reassembly: &Reassembly, place: AssemblyIdx) -> String {
    let assembly = reassembly.assemblies.at(place);
    let message = assembly.message.as_ref().expect("it has not ended");
    let (arrivals, trigger) = (assembly.arrivals, assembly.trigger);
    let marks = (assembly.congestion, assembly.duplicate);
    format!("{arrivals:?} {trigger} {marks:?} {:?}", message.data())
}

/// Gives each frame to reassembly alone; returns whether a CR is due.
fn take_each(reassembly: &mut Reassembly, place: AssemblyIdx, frames: &[Vec<u8>]) -> bool {
    let mut is_due = false;
    for frame in frames {
        let header = Header::decode(frame).expect("it is valid");
        let data = Data::Here(&frame[HEADER_LEN..]);
        let taken = reassembly.take(place, &header, data, DATA_SIZE, false);
        let is_new = taken == Ok(Taken::New);
        is_due |= is_new && !header.flags.has(Flags::FOLLOWED);
    }
    is_due
}

fn run(reassembly: &mut Reassembly, place: AssemblyIdx, frames: &[Vec<u8>]) -> Run {
    let header = Header::decode(&frames[0]).expect("it is valid");
    let frames = frames.iter().map(|frame| &frame[..]);
    reassembly.take_run(place, &header, DATA_SIZE, frames)
}

fn frames(numbers: impl IntoIterator<Item = u32>) -> Vec<Vec<u8>> {
    let numbers = numbers.into_iter();
    numbers.map(|number| frame(&header(number))).collect()
}

proptest! {
    #[test]
    fn a_run_changes_a_request_as_its_packets_do(
        before in prop::collection::vec(0..PACKETS, 0..6),
        first in 0..PACKETS,
        count in 1..PACKETS,
        followed in any::<u16>(),
    ) {
        let mut pool = Pool::new(PoolConfig::default()).expect("memory for a pool");
        let ((mut one, at), (mut each, place)) = (begun(&mut pool), begun(&mut pool));
        for (reassembly, place) in [(&mut one, at), (&mut each, place)] {
            take_each(reassembly, place, &frames(before.clone()));
        }
        let all: Vec<_> = (first..PACKETS.min(first + count)).map(|number| {
            let mut header = header(number);
            if followed >> number & 1 != 0 {
                header.flags = Flags::FOLLOWED;
            }
            frame(&header)
        }).collect();
        let before = state(&one, at);
        let run = run(&mut one, at, &all);
        let taken = &all[..run.packets as usize];
        prop_assert_eq!(run.is_credit_due, take_each(&mut each, place, taken));
        prop_assert_eq!(state(&one, at), state(&each, place));
        prop_assert_eq!(run.packets == 0, state(&one, at) == before);
    }
}

#[test]
fn a_run_takes_packets_in_order_and_leaves_the_last_of_the_request() {
    let mut pool = Pool::new(PoolConfig::default()).expect("memory for a pool");
    let (mut reassembly, place) = begun(&mut pool);
    let mut take =
        |numbers: &[u32]| run(&mut reassembly, place, &frames(numbers.iter().copied())).packets;
    assert_eq!(take(&[1, 2]), 0, "packet 0 is missing");
    assert_eq!(take(&[0, 1, 3]), 2);
    assert_eq!(take(&[1, 2]), 0, "packet 1 came before");
    assert_eq!(take(&[2, 3, 4, 5, 6, 7, 8, 9]), 7);
    assert_eq!(take(&[9]), 0);
}

#[test]
fn a_run_ends_with_a_frame_that_differs_in_more_than_its_number() {
    let other = header(2);
    let others = [
        Header {
            kind: PacketType::Resp,
            ..other
        },
        Header {
            flags: Flags::RETRANSMISSION,
            ..other
        },
        Header { aux: 8, ..other },
        Header {
            session: SessionNum(4),
            ..other
        },
        Header {
            token: Token(5),
            ..other
        },
        Header {
            size: SIZE + 1,
            ..other
        },
        Header {
            req: ReqNum(6),
            ..other
        },
    ];
    let longer = [frame(&other), vec![0]].concat();
    let shorter = frame(&other)[..HEADER_LEN + DATA_SIZE - 1].to_vec();
    let wrong = others
        .iter()
        .map(frame)
        .chain([longer, shorter, Vec::new()]);
    for wrong in wrong {
        let mut pool = Pool::new(PoolConfig::default()).expect("memory for a pool");
        let (mut reassembly, place) = begun(&mut pool);
        let all = [frames([0, 1]), vec![wrong], frames([2, 3])].concat();
        assert_eq!(run(&mut reassembly, place, &all).packets, 2);
    }
}
