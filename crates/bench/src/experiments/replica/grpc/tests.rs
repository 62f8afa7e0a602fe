//! Frames, answers and fields.

use super::*;

#[test]
fn frames_are_taken_when_they_are_whole() {
    let bytes = [0, 0, 2, DATA, END_STREAM, 0x80, 0, 0, 5, 7, 8, 9];
    let (frame, rest) = Frame::split(&bytes).unwrap();
    assert_eq!(
        (frame.kind, frame.flags, frame.stream),
        (DATA, END_STREAM, 5)
    );
    assert_eq!((frame.payload, rest), (&[7, 8][..], &[9][..]));
    assert!(Frame::split(&bytes[..10]).is_none());
}

#[test]
fn an_answer_has_one_message() {
    assert_eq!(message_of(&[0, 0, 0, 0, 2, 7, 8]), Some(&[7, 8][..]));
    assert_eq!(message_of(&[0, 0, 0, 0, 2, 7]), None);
    assert_eq!(message_of(&[1, 0, 0, 0, 1, 7]), None);
    assert_eq!(message_of(&[]), None);
}

#[test]
fn fields_follow_the_rfc() {
    let fields = fields_of("/a", "b");
    let head = [0x83, 0x86, 4, 2, b'/', b'a', 1, 1, b'b', 15, 16, 16];
    assert_eq!(fields[..12], head);
    assert!(fields.ends_with(b"\0\x02te\x08trailers"));
}
