//! Sizes of memory in flags and in the system's file.

use super::{size, total_memory};

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

#[test]
fn the_memory_of_the_machine_is_read() {
    let text = "MemTotal:       16384256 kB\nMemFree:         123 kB\n";
    assert_eq!(total_memory(text), Some(16_384_256 * 1024));
    assert_eq!(total_memory("MemFree: 1 kB\n"), None);
}
