//! Bursts of packets that are alike, and of others.

use super::*;

/// Bytes of a packet with its descriptor, and of the descriptor.
const WHOLE: usize = 256;
const START: usize = 64;

/// The packets of a burst.
struct Memory(Vec<[u8; WHOLE]>);

/// The packets for these contents. The first byte of each names it, and the third is its payload.
fn memory(contents: &[&[u8]]) -> Memory {
    let packet = |content: &&[u8]| {
        let mut packet = [0; WHOLE];
        packet[START..START + content.len()].copy_from_slice(content);
        packet
    };
    Memory(contents.iter().map(packet).collect())
}

/// Receives these packets. If `is_plain`, their handles say where they lie.
fn receive(memory: &mut Memory, batch: &mut Received, contents: &[&[u8]], is_plain: bool) {
    let (handles, bytes, lens) = batch.places(BATCH);
    for (index, packet) in memory.0.iter_mut().enumerate() {
        let packet = packet.as_mut_ptr();
        handles[index] = packet.cast();
        if !is_plain {
            bytes[index] = packet.wrapping_add(START);
        }
        lens[index] = u32::try_from(contents[index].len()).expect("short");
    }
    batch.on_received(contents.len(), if is_plain { START } else { 0 });
}

/// Shows the third byte of packets: of the first ones as long as they are alike and begin with 1,
/// then of each that begins with 1 or 2. Packets that begin with 2 are marked. Returns the first
/// bytes of the other packets.
fn show(batch: &mut Received) -> Vec<u8> {
    batch.show_alike(2..3, |bytes| bytes[0] == 1);
    let mut others = Vec::new();
    batch.sift(
        |bytes| match bytes {
            [1 | 2, _, _, ..] => Ok((&bytes[2..3], bytes[0] == 2)),
            _ => Err(()),
        },
        |packet, ()| others.push(packet.bytes()[0]),
    );
    others
}

/// The shown payloads, and whether each is marked.
fn shown(batch: &Received) -> Vec<(u8, bool)> {
    let one = |index| (batch.bytes(index)[0], batch.is_marked(index));
    (0..batch.len()).map(one).collect()
}

const CONTENTS: [&[u8]; 5] = [
    &[1, 0, 10],
    &[1, 0, 11],
    &[1, 0, 12, 0],
    &[2, 0, 13],
    &[3, 0, 14],
];

/// The payloads of those whose first byte is 1 or 2.
const SHOWN: [(u8, bool); 4] = [(10, false), (11, false), (12, false), (13, true)];

#[test]
fn packets_are_shown_in_order_wherever_they_lie() {
    for is_plain in [true, false] {
        let (mut memory, mut batch) = (memory(&CONTENTS), Received::default());
        receive(&mut memory, &mut batch, &CONTENTS, is_plain);
        assert_eq!(show(&mut batch), [3]);
        assert_eq!(shown(&batch), SHOWN);
        assert_eq!(batch.total(), 4);
        let alike = (0..batch.len()).filter(|index| batch.is_alike(*index));
        assert_eq!(alike.count(), if is_plain { 2 } else { 0 });
        let (handles, is_mixed) = batch.give_up();
        assert_eq!((handles.len(), is_mixed), (4, !is_plain));
        assert_eq!(batch.len(), 0);
    }
}

#[test]
fn packets_are_shown_in_halves_in_order_wherever_they_lie() {
    for is_plain in [true, false] {
        for most in 1..CONTENTS.len() {
            let contents = &CONTENTS[..most];
            let (mut memory, mut batch) = (memory(contents), Received::default());
            receive(&mut memory, &mut batch, contents, is_plain);
            show(&mut batch);
            let alike = if is_plain { most.min(2) } else { 0 };
            batch.hide_half();
            let half = most.div_ceil(2);
            assert_eq!(shown(&batch), SHOWN[..half]);
            let lined_up: Vec<_> = batch.alike_from(0).collect();
            assert_eq!(lined_up.len(), alike.min(half));
            assert!(batch.has_rest());
            batch.show_rest();
            assert!(!batch.has_rest());
            assert_eq!(shown(&batch), SHOWN[half..most]);
            let lined_up: Vec<_> = batch.alike_from(0).collect();
            assert_eq!(lined_up.len(), alike.saturating_sub(half));
            // All go back, each once.
            let mut handles = batch.give_up().0.to_vec();
            handles.sort_unstable();
            handles.dedup();
            assert_eq!(handles.len(), most);
            // Those that are never shown do, too.
            receive(&mut memory, &mut batch, contents, is_plain);
            show(&mut batch);
            batch.hide_half();
            assert_eq!(batch.give_up().0.len(), most);
            assert!(!batch.has_rest() && batch.len() == 0);
        }
    }
}

#[test]
fn packets_come_after_those_of_the_inbox() {
    let mut other = memory(&[&[7, 8, 9]]);
    let bytes = other.0[0].as_mut_ptr();
    // SAFETY: the packet is used by its value alone.
    let packet = unsafe { Packet::new(bytes.cast(), bytes.wrapping_add(START), 3) };
    let (mut memory, mut batch) = (memory(&CONTENTS[..2]), Received::default());
    let payload = Payload {
        start: 1,
        len: 1,
        congestion: true,
    };
    batch.push_payload(packet, payload);
    receive(&mut memory, &mut batch, &CONTENTS[..2], true);
    assert_eq!(show(&mut batch), []);
    assert_eq!(shown(&batch), [(8, true), (10, false), (11, false)]);
    assert!(batch.give_up().1, "they may be of two pools");
    // The next burst starts with an empty batch.
    receive(&mut memory, &mut batch, &CONTENTS[..2], true);
    show(&mut batch);
    assert_eq!(shown(&batch), SHOWN[..2]);
}

#[test]
fn a_payload_beyond_the_packets_is_not_shown() {
    let contents: [&[u8]; 2] = [&[1, 0], &[1, 0]];
    let (mut memory, mut batch) = (memory(&contents), Received::default());
    receive(&mut memory, &mut batch, &contents, true);
    assert_eq!(show(&mut batch), [1, 1]);
    assert_eq!((batch.len(), batch.is_alike(0)), (0, false));
}

#[test]
#[should_panic(expected = "a frame of the burst")]
fn a_packet_that_is_not_there_is_not_shown() {
    Received::default().bytes(0);
}
