//! Copies of all short lengths.

use super::copy_short;

#[test]
fn a_copy_has_all_bytes_and_changes_no_others() {
    for len in 0..=70_u8 {
        let from: Vec<u8> = (1..=len).collect();
        let mut to = vec![0xff; from.len() + 3];
        copy_short(&mut to, &from);
        assert_eq!(to, [&from[..], &[0xff; 3]].concat(), "{len} bytes");
    }
}
