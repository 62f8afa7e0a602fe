//! Packets from a kernel that is honest, one that is slow, and one that lies.

use proptest::prelude::*;

use super::*;
use crate::tests::model::{HEADROOM, Kernel, model};
use crate::umem::MIN_FRAMES;

const HALF: usize = MIN_FRAMES as usize / 2;

fn arrivals() -> (Arrivals, Arc<Kernel>) {
    let it = model(1);
    let part = it.receiving.shared();
    let arrivals = Arrivals::new(part, it.rings.rx, it.shared, it.kernel.clone());
    (arrivals, it.kernel)
}

/// The bytes of the next packet, which goes back to the kernel.
fn next(arrivals: &mut Arrivals) -> Option<Vec<u8>> {
    let mut room = vec![0; WHOLE];
    let bytes = match arrivals.next(&mut room)? {
        NextPacket::Piece(piece) => arrivals.bytes(piece).to_vec(),
        NextPacket::Whole(len) => room[..len].to_vec(),
    };
    arrivals.give_back();
    Some(bytes)
}

fn packet(len: usize) -> Vec<u8> {
    (0..len)
        .map(|at| u8::try_from(at * 13 % 253).unwrap())
        .collect()
}

#[test]
fn packets_of_one_and_several_pieces_arrive_whole() {
    let (mut arrivals, kernel) = arrivals();
    // More than the region has frames.
    for round in 0..if cfg!(miri) { 1 } else { 20 } {
        for (len, piece) in [
            (60, 3840),
            (3840, 3840),
            (3841, 3840),
            (if cfg!(miri) { 3900 } else { 65_000 }, 3840),
            (9000, 1),
        ] {
            let packet = packet(len);
            if piece == 1 {
                assert!(kernel.deliver(&packet[..17], 1));
                assert_eq!(next(&mut arrivals).unwrap(), packet[..17]);
            } else {
                assert!(kernel.deliver(&packet, piece), "round {round}");
                assert_eq!(next(&mut arrivals).unwrap(), packet);
            }
        }
    }
    assert_eq!(next(&mut arrivals), None);
    assert_eq!(arrivals.bad(), 0);
}

#[test]
fn without_empty_frames_nothing_arrives_and_then_it_goes_on() {
    let (mut arrivals, kernel) = arrivals();
    for _ in 0..3 {
        let mut delivered = 0;
        while kernel.deliver(&packet(100), 3840) {
            delivered += 1;
        }
        assert_eq!(delivered, HALF);
        for _ in 0..delivered {
            assert_eq!(next(&mut arrivals).unwrap(), packet(100));
        }
        assert_eq!(next(&mut arrivals), None);
    }
}

#[test]
fn a_packet_whose_rest_is_missing_waits() {
    let (mut arrivals, kernel) = arrivals();
    let addr = {
        let mut ends = kernel.ends();
        ends.fill.available(2);
        [ends.fill.pop().unwrap(), ends.fill.pop().unwrap()]
    };
    let piece = |addr: u64, options| Desc {
        addr: addr + HEADROOM,
        len: 10,
        options,
    };
    kernel.lie(piece(addr[0], Desc::CONTINUES));
    assert_eq!(next(&mut arrivals), None);
    assert_eq!(next(&mut arrivals), None);
    kernel.lie(piece(addr[1], 0));
    assert_eq!(next(&mut arrivals).unwrap(), [0; 20]);
    assert_eq!(arrivals.bad(), 0);
}

#[test]
fn bad_entries_are_counted_and_the_next_good_packet_arrives() {
    let (mut arrivals, kernel) = arrivals();
    let good = kernel.ends().fill.available(1);
    assert_eq!(good as usize, HALF);
    let entry = |addr, len| Desc {
        addr,
        len,
        options: 0,
    };
    let lies = [
        entry(u64::MAX, 10),
        entry(u64::from(MIN_FRAMES) * FRAME as u64, 10),
        // A frame of the sending half.
        entry(HALF as u64 * FRAME as u64, 10),
        // Pieces that end after their frames; the last one overflows 32 bits.
        entry(0, 4097),
        entry(FRAME as u64 + 4000, 97),
        entry(2 * FRAME as u64 + 1, u32::MAX),
        // A frame that the kernel had, given back twice.
        entry(3 * FRAME as u64, 10),
        entry(3 * FRAME as u64, 10),
    ];
    for lie in lies {
        kernel.lie(lie);
    }
    assert_eq!(
        next(&mut arrivals).unwrap(),
        [0; 10],
        "the kernel had that frame"
    );
    assert_eq!(arrivals.bad(), 6);
    assert_eq!(next(&mut arrivals), None);
    assert_eq!(arrivals.bad(), 7, "it comes back once");
    assert!(kernel.deliver(&packet(77), 3840));
    assert_eq!(next(&mut arrivals).unwrap(), packet(77));
}

#[test]
fn pieces_without_an_end_are_dropped() {
    let (mut arrivals, kernel) = arrivals();
    for frame in 0..u64::from(PIECES) + 3 {
        kernel.lie(Desc {
            addr: frame * FRAME as u64,
            len: 10,
            options: Desc::CONTINUES,
        });
    }
    assert_eq!(next(&mut arrivals), None);
    assert_eq!(arrivals.bad(), 1);
    kernel.lie(Desc {
        addr: 40 * FRAME as u64,
        len: 10,
        options: 0,
    });
    assert_eq!(
        next(&mut arrivals).unwrap().len(),
        40,
        "the rest of them, and their end"
    );
}

#[test]
fn a_ring_with_an_impossible_position_is_left_alone() {
    let (mut arrivals, kernel) = arrivals();
    assert!(kernel.deliver(&packet(5), 3840));
    assert!(next(&mut arrivals).is_some());
    kernel.ends().rx.run_away();
    assert_eq!(next(&mut arrivals), None);
    assert_eq!(arrivals.bad(), 1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 128 }))]
    #[test]
    fn any_entries_are_read_without_harm(
        entries in proptest::collection::vec((any::<u32>(), 0_u32..5000, 0_u32..3), 0..60),
    ) {
        let (mut arrivals, kernel) = arrivals();
        let count = entries.len();
        for (addr, len, options) in entries {
            kernel.lie(Desc { addr: u64::from(addr) % (1 << 20), len, options });
        }
        let mut shown = 0;
        for _ in 0..if cfg!(miri) { 5 } else { 100 } {
            if let Some(bytes) = next(&mut arrivals) {
                prop_assert!(bytes.len() <= WHOLE);
                shown += 1;
            }
        }
        let bad = usize::try_from(arrivals.bad()).unwrap();
        prop_assert!(shown + bad <= count, "{} and {} of {}", shown, bad, count);
    }
}
