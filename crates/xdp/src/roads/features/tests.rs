//! The kinds that the kernel's bits name.

use super::*;

#[test]
fn a_driver_has_zero_copy_if_its_packets_may_have_several_frames() {
    let of = |bits, pieces| {
        let features = Features::of_bits(bits, pieces);
        (features.native, features.zero_copy)
    };
    assert_eq!(of(0, 1), (false, false));
    assert_eq!(of(1, 1), (false, false));
    assert_eq!(of(3, 4), (true, false));
    assert_eq!(of(0xB, 1), (true, false));
    assert_eq!(of(0xB, 2), (true, true));
}
