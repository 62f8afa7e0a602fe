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
    let (mut sending, mut receiving) = (sending(), None);
    for end in [4, 8, 10] {
        let piece = sending.next(4).unwrap();
        let taken = Receiving::take(&mut receiving, &piece).unwrap();
        let bytes = piece.bytes.len();
        sending.on_sent(bytes);
        assert!(sending.next(4).is_none(), "one part at a time");
        let progress = sending.on_arrived();
        assert_eq!(progress == Progress::Whole, end == 10);
        assert_eq!(
            taken.map(|it| it.image),
            (end == 10).then(|| (0..10).collect())
        );
    }
    assert!(receiving.is_none());
}

#[test]
fn a_part_out_of_order_is_refused_and_the_first_begins_anew() {
    let (sending, mut receiving) = (sending(), None);
    let first = sending.next(4).unwrap();
    let gap = Piece {
        offset: 8,
        bytes: &[8, 9],
        ..first
    };
    assert!(
        Receiving::take(&mut receiving, &gap).is_err(),
        "nothing has begun"
    );
    assert!(Receiving::take(&mut receiving, &first).unwrap().is_none());
    assert!(Receiving::take(&mut receiving, &gap).is_err());
    let second = Piece { offset: 4, ..first };
    for other in [Piece { from: 9, ..second }, Piece { term: 9, ..second }] {
        assert!(Receiving::take(&mut receiving, &other).is_err());
    }
    assert!(Receiving::take(&mut receiving, &second).unwrap().is_none());
    assert!(
        Receiving::take(&mut receiving, &second).is_err(),
        "it has that part"
    );
    assert!(Receiving::take(&mut receiving, &first).unwrap().is_none());
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
