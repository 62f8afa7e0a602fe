//! A put is encoded as etcd expects it, and the revision in its answer is found.

use super::*;

#[test]
fn a_put_is_a_message_of_etcd() {
    let message = request(&[1; KEY], &[2; VALUE]);
    assert_eq!(message[..2], [0x0a, 16]);
    assert_eq!(message[18..20], [0x12, 64]);
    assert_eq!(message.len(), 84);
}

#[test]
fn the_revision_is_found_after_fields_of_other_lengths() {
    // Cluster 300, member 2^63 and more, revision 129, term 2.
    let header = [
        0x08, 0xac, 0x02, 0x10, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, 0x18,
        0x81, 0x01, 0x20, 0x02,
    ];
    let mut message = vec![0x0a, 19];
    message.extend_from_slice(&header);
    assert_eq!(revision_of(&message), Some(129));
    assert_eq!(revision_of(&message[..15]), None);
    assert_eq!(revision_of(b""), None);
}
