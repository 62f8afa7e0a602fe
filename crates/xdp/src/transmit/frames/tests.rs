//! Frames under a kernel that sends, one that does not, and one that lies.

use dunlin_core::transport::PeerId;
use dunlin_msgbuf::{Pool, PoolConfig};

use super::*;
use crate::tests::model::{Kernel, model};
use crate::umem::MIN_FRAMES;
use dunlin_packet::check::{homes, peer_of, written};
use dunlin_packet::{Home, parse};

const HALF: usize = MIN_FRAMES as usize / 2;

fn frames() -> (Frames, Arc<Kernel>) {
    let it = model(1);
    let supply = it.sending[0].own();
    let frames = Frames::new(supply, 0, it.rings.tx, it.shared, it.kernel.clone());
    (frames, it.kernel)
}

/// The sender of the tests, the receiver, and the headers from one to the other.
fn ends() -> (Home, Home, Header) {
    let to = homes()[0];
    let from = Home {
        address: peer_of(&to),
        ..to
    };
    (from, to, Header::new(&from, to.address, to.mac))
}

/// Sends a datagram with one packet; false if there is no room.
fn send(frames: &mut Frames, header: &Header, payload: &[u8]) -> bool {
    let Some(mut open) = frames.open(header) else {
        return false;
    };
    let (inline, data) = payload.split_at(payload.len() / 3);
    if !frames.append(&mut open, inline, data) {
        frames.discard();
        return false;
    }
    frames.close(&open, &header.stamp(open.payload()))
}

#[test]
fn datagrams_of_every_length_leave_as_they_are_written() {
    let (mut frames, kernel) = frames();
    let (from, to, header) = ends();
    let most = PIECES * FRAME - header.bytes();
    // Miri is slow, and each number of pieces is enough for it.
    let lens: &[usize] = if cfg!(miri) {
        &[59, 4054, 4055, 8150]
    } else {
        &[1472, 4053, 4054, 4055, 8149, 8150, 8972, most]
    };
    let shortest = if cfg!(miri) { 60 } else { 1 };
    for len in (shortest..60).chain(lens.iter().copied()) {
        let payload: Vec<u8> = (0..len)
            .map(|at| u8::try_from(at * 7 % 251).unwrap())
            .collect();
        assert!(send(&mut frames, &header, &payload), "{len} bytes");
        assert!(frames.kick());
        kernel.complete();
        let sent = std::mem::take(&mut kernel.ends().sent);
        assert_eq!(sent, [written(&from, &to, &payload)], "{len} bytes");
        let found = parse(&sent[0], &to).unwrap();
        assert_eq!(&sent[0][found.start..][..found.len], payload);
    }
    assert!(!send(&mut frames, &header, &vec![0; most + 1]), "too long");
    assert_eq!(frames.met().bad, 0);
}

#[test]
fn a_short_packet_leaves_as_it_is_written() {
    let (mut frames, kernel) = frames();
    let (from, to, header) = ends();
    for len in if cfg!(miri) { 60_u8..62 } else { 1..130 } {
        let payload: Vec<u8> = (0..len).map(|at: u8| at.wrapping_mul(7)).collect();
        assert!(frames.send(&header.stamp(payload.len()), &payload));
        assert!(frames.kick());
        kernel.complete();
        let sent = std::mem::take(&mut kernel.ends().sent);
        assert_eq!(sent, [written(&from, &to, &payload)], "{len} bytes");
    }
    assert_eq!(frames.met().bad, 0);
}

/// A lane with packets for these peers, with messages of these lengths.
fn lane(packets: &[(u32, usize)]) -> Lane {
    let mut pool = Pool::new(PoolConfig::default()).expect("memory for a pool");
    let mut lane = Lane::new(usize::MAX);
    for (number, (peer, len)) in packets.iter().enumerate() {
        let mut message = pool.alloc(*len).expect("memory");
        let bytes = (number..).map(|byte| u8::try_from(byte % 251).expect("small"));
        let places = message.data_mut().iter_mut();
        places.zip(bytes).for_each(|(to, byte)| *to = byte);
        assert!(lane.push(PeerId(*peer), [number as u64, u64::MAX, 0], &message));
    }
    lane
}

/// Sends the packets of a lane. Returns how many left at a time.
fn send_lane(frames: &mut Frames, header: &Header, lane: &Lane) -> Vec<usize> {
    let mut rest = lane.packets();
    let mut counts = Vec::new();
    while let Some(first) = rest.first() {
        let count = frames.send_alike(&header.stamp(first.size()), lane, *first, rest);
        if count == 0 {
            break;
        }
        counts.push(count);
        rest = &rest[count..];
    }
    counts
}

#[test]
fn packets_of_a_lane_leave_as_they_are_written() {
    for to in homes() {
        let from = Home {
            address: peer_of(&to),
            ..to
        };
        let header = Header::new(&from, to.address, to.mac);
        let (mut frames, kernel) = frames();
        for len in if cfg!(miri) { 31..=32 } else { 0..=32 } {
            let lane = lane(&[(7, len); 3]);
            assert_eq!(
                send_lane(&mut frames, &header, &lane).iter().sum::<usize>(),
                3
            );
            assert!(frames.kick());
            kernel.complete();
            let sent = std::mem::take(&mut kernel.ends().sent);
            let packets = lane.packets().iter();
            let wanted = packets.map(|packet| written(&from, &to, lane.bytes(*packet)));
            assert!(wanted.eq(sent), "{len} bytes");
        }
        assert_eq!(frames.met().bad, 0);
    }
}

#[test]
fn packets_leave_together_up_to_another_peer_or_length() {
    let (mut frames, kernel) = frames();
    let (_, _, header) = ends();
    let lane = lane(&[(7, 32), (7, 32), (8, 32), (8, 31), (7, 31)]);
    assert_eq!(send_lane(&mut frames, &header, &lane), [2, 1, 1, 1]);
    assert!(frames.kick());
    assert_eq!(kernel.ends().sent.len(), 5);
}

#[test]
fn a_burst_goes_around_the_end_of_the_ring() {
    let (mut frames, kernel) = frames();
    let (from, to, header) = ends();
    for (count, parts) in [(40, vec![40]), (1, vec![1]), (30, vec![23, 7])] {
        let lane = lane(&vec![(7, 32); count]);
        assert_eq!(send_lane(&mut frames, &header, &lane), parts);
        assert!(frames.kick());
        kernel.complete();
        let sent = std::mem::take(&mut kernel.ends().sent);
        let packets = lane.packets().iter();
        let wanted = packets.map(|packet| written(&from, &to, lane.bytes(*packet)));
        assert!(wanted.eq(sent));
    }
}

#[test]
fn packets_without_a_frame_stay_until_the_kernel_gives_frames_back() {
    let (mut frames, kernel) = frames();
    let (_, _, header) = ends();
    let lane = lane(&[(7, 32); HALF + 9]);
    assert_eq!(send_lane(&mut frames, &header, &lane), [HALF]);
    assert_eq!(send_lane(&mut frames, &header, &lane), []);
    kernel.complete();
    assert_eq!(send_lane(&mut frames, &header, &lane), [HALF]);
    assert_eq!(kernel.ends().sent.len(), 2 * HALF);
    assert_eq!(frames.met().datagrams, 2 * HALF as u64);
}

#[test]
fn few_frames_are_in_use_while_the_kernel_sends_at_once() {
    let (mut frames, kernel) = frames();
    let (_, _, header) = ends();
    let mut used = std::collections::BTreeSet::new();
    for _ in 0..4 * HALF {
        assert!(send(&mut frames, &header, b"a packet"));
        assert!(frames.kick());
        used.extend(kernel.ends().uncompleted.iter().copied());
        kernel.complete();
    }
    assert!(used.len() <= UNCLAIMED + 1, "{}", used.len());
}

#[test]
fn packets_share_a_datagram_and_its_sum() {
    let (mut frames, kernel) = frames();
    let (from, to, header) = ends();
    let mut open = frames.open(&header).unwrap();
    for packet in [&b"one"[..], b"three", b"x"] {
        assert!(frames.append(&mut open, packet, b"#"));
    }
    assert_eq!((open.payload(), open.packets()), (12, 3));
    assert!(frames.close(&open, &header.stamp(open.payload())));
    frames.kick();
    assert_eq!(kernel.ends().sent, [written(&from, &to, b"one#three#x#")]);
}

#[test]
fn lines_share_a_datagram_across_the_end_of_a_frame() {
    let (mut frames, kernel) = frames();
    let (from, to, header) = ends();
    let mut open = frames.open(&header).unwrap();
    let mut packets = Vec::new();
    // Odd and even lengths, so that packets begin at odd bytes, too.
    for len in (1..=MAX_INLINE).cycle().take(3 * MAX_INLINE) {
        let mut line = [0; MAX_INLINE];
        line[..len].fill(u8::try_from(len).unwrap());
        assert!(frames.append_line(&mut open, &line, len));
        packets.extend(&line[..len]);
    }
    assert!(packets.len() > FRAME, "it takes two frames");
    assert_eq!(open.payload(), packets.len());
    assert!(frames.close(&open, &header.stamp(open.payload())));
    frames.kick();
    assert_eq!(kernel.ends().sent, [written(&from, &to, &packets)]);
}

#[test]
fn frames_that_are_not_completed_run_out_and_come_back() {
    let (mut frames, kernel) = frames();
    let (_, _, header) = ends();
    for round in 0..3 {
        for _ in 0..HALF {
            assert!(send(&mut frames, &header, b"payload"), "round {round}");
        }
        assert!(
            !send(&mut frames, &header, b"payload"),
            "all frames are the kernel's"
        );
        kernel.complete();
    }
    assert_eq!(frames.met().datagrams, 3 * HALF as u64);
}

#[test]
fn a_kernel_without_memory_keeps_frames_until_it_has_some() {
    let (mut frames, kernel) = frames();
    let (_, _, header) = ends();
    kernel.ends().refuses = Some(Kicked::Again);
    assert!(send(&mut frames, &header, b"waits"));
    assert!(frames.kick());
    assert!(kernel.ends().sent.is_empty());
    kernel.ends().refuses = None;
    assert!(
        frames.kick(),
        "nothing new was written, but something waits"
    );
    assert_eq!(kernel.ends().sent.len(), 1);
    let calls = frames.met().calls;
    frames.kick();
    assert_eq!(frames.met().calls, calls, "now nothing waits");
    kernel.ends().refuses = Some(Kicked::Down);
    assert!(send(&mut frames, &header, b"lost"));
    assert!(!frames.kick(), "the interface is down");
}

#[test]
fn lies_about_completion_are_counted_and_change_nothing() {
    let (mut frames, kernel) = frames();
    let (_, _, header) = ends();
    assert!(send(&mut frames, &header, b"payload"));
    frames.kick();
    let own = kernel.ends().uncompleted[0];
    let lies = [0, u64::MAX, own ^ 1 << 40, 2 * (HALF * FRAME) as u64];
    for lie in lies {
        kernel.lie_about_completion(lie);
    }
    kernel.lie_about_completion(own);
    kernel.lie_about_completion(own);
    kernel.ends().uncompleted.clear();
    // All frames are used once, so that the ring is read.
    let mut sent = 0;
    while send(&mut frames, &header, b"payload") {
        sent += 1;
    }
    assert_eq!(sent, HALF);
    assert_eq!(frames.met().bad, lies.len() as u64 + 1);
}

#[test]
fn a_broken_ring_drops_and_does_not_hang() {
    let (mut frames, kernel) = frames();
    let (_, _, header) = ends();
    for _ in 0..HALF {
        assert!(send(&mut frames, &header, b"payload"));
    }
    frames.kick();
    kernel.complete();
    // The kernel claims to have read what was never written.
    kernel.ends().tx.overtake();
    assert!(!send(&mut frames, &header, b"payload"));
    assert!(frames.kick());
    assert!(frames.is_broken());
}

#[test]
fn packets_that_the_kernel_does_not_take_at_once_leave_before_the_end() {
    let (mut frames, kernel) = frames();
    let (_, _, header) = ends();
    kernel.ends().refuses = Some(Kicked::Again);
    for _ in 0..3 {
        assert!(send(&mut frames, &header, b"a last packet"));
    }
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(2 * BETWEEN_KICKS);
            kernel.ends().refuses = None;
        });
        drop(frames);
    });
    assert_eq!(kernel.ends().sent.len(), 3);
}
