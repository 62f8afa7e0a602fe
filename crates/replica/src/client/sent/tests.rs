//! Tags and places.

use dunlin_core::Nanos;

use super::*;

fn add(sent: &mut Sent, room: usize) -> Tag {
    let tag = sent.next_tag();
    let mut operation = Operation::opening(Nanos::MAX);
    operation.room = room;
    sent.add(tag, operation);
    tag
}

#[test]
fn each_tag_finds_its_operation_once() {
    let mut sent = Sent::default();
    let tags: Vec<_> = (0..100).map(|room| add(&mut sent, room)).collect();
    assert_eq!((sent.len(), sent.calls()), (100, 100));
    for (room, tag) in tags.iter().enumerate().rev() {
        assert_eq!(sent.take(*tag).unwrap().room, room);
        assert!(sent.take(*tag).is_none());
    }
    assert_eq!(sent.len(), 0);
}

#[test]
fn a_tag_of_an_earlier_call_finds_no_operation_in_the_same_place() {
    let mut sent = Sent::default();
    let earlier = add(&mut sent, 1);
    sent.take(earlier).unwrap();
    let later = add(&mut sent, 2);
    assert!(sent.take(earlier).is_none());
    assert!(sent.take(Tag(later.0 ^ MARK)).is_none());
    assert!(sent.take(Tag(u64::MAX)).is_none());
    assert_eq!(sent.take(later).unwrap().room, 2);
}

#[test]
fn a_refused_call_leaves_no_operation() {
    let mut sent = Sent::default();
    let refused = sent.next_tag();
    let made = add(&mut sent, 1);
    assert!(sent.take(refused).is_none());
    assert!(sent.take(made).is_some());
}

#[test]
fn all_tags_have_the_mark() {
    let mut sent = Sent {
        calls: u64::MAX >> 20,
        ..Sent::default()
    };
    for room in 0..4 {
        assert_eq!(add(&mut sent, room).0 >> 48, MARK >> 48);
    }
}
