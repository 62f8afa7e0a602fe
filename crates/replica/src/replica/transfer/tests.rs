//! Parts in order, and parts that are not.

use super::*;

fn message() -> Message {
    let snapshot = Snapshot {
        data: (0..10).collect::<Vec<u8>>().into(),
        ..Snapshot::default()
    };
    Message {
        term: 3,
        snapshot: Some(snapshot).into(),
        ..Message::default()
    }
}

fn sending() -> Sending {
    Sending::new(message(), None)
}

#[test]
fn parts_make_the_whole() {
    let (mut sending, mut came) = (sending(), Vec::new());
    for end in [4, 8, 10] {
        let piece = sending.next(4).unwrap();
        assert_eq!((piece.total, piece.offset), (10, came.len() as u64));
        came.extend_from_slice(piece.bytes);
        assert_eq!(
            sending.progress(),
            (came.len() as u64 - piece.bytes.len() as u64, 10)
        );
        let bytes = piece.bytes.len();
        sending.on_sent(bytes);
        assert!(sending.next(4).is_none(), "one part at a time");
        let progress = sending.on_arrived();
        assert_eq!(progress == Progress::Whole, end == 10);
    }
    assert_eq!(came, (0..10).collect::<Vec<u8>>());
}

#[test]
fn a_snapshot_in_place_of_another_waits_for_the_end_of_its_part() {
    let mut first = sending();
    first.on_sent(4);
    let mut second = Sending::new(message(), Some(&first));
    assert!(second.next(4).is_none(), "a part of the first is under way");
    let third = Sending::new(message(), Some(&second));
    assert!(third.next(4).is_none());
    assert!(second.ends_earlier());
    let bytes = second.next(4).unwrap().bytes.len();
    second.on_sent(bytes);
    assert!(!second.ends_earlier());
    assert!(second.on_arrived() == Progress::Goes);
    assert_eq!(second.next(4).unwrap().offset, 4);
}
