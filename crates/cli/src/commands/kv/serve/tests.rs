//! Sizes of memory in flags.

use super::size;

#[test]
fn sizes_have_units() {
    assert_eq!(size("4096"), Ok(4096));
    assert_eq!(size("64 MiB"), Ok(64 << 20));
    assert_eq!(size("2G"), Ok(2 << 30));
    for wrong in [
        "",
        "GiB",
        "-1",
        "1.5GiB",
        "1Gb",
        "99999999999999999999",
        "99999999TiB",
    ] {
        assert!(size(wrong).is_err(), "{wrong}");
    }
}
