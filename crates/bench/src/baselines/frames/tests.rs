//! The sums of the raw packets.

use super::*;

#[test]
fn a_sum_finds_each_changed_byte() {
    let mut packet: Vec<u8> = (0..63).collect();
    packet[40..42].fill(0);
    let written = finish(sum(&packet));
    packet[40..42].copy_from_slice(&written.to_ne_bytes());
    assert!(is_right(sum(&packet)));
    for at in 0..packet.len() {
        packet[at] ^= 0x10;
        assert!(!is_right(sum(&packet)), "byte {at}");
        packet[at] ^= 0x10;
    }
}

#[test]
fn sums_follow_rfc_1071() {
    // The example of its section 3.
    let bytes = [0x00, 0x01, 0xF2, 0x03, 0xF4, 0xF5, 0xF6, 0xF7];
    assert_eq!(fold(sum(&bytes)).to_ne_bytes(), [0xDD, 0xF2]);
}
