//! The scribbler finds the shared memory in a table of mappings, and nothing else.

use super::*;

#[test]
fn shared_memory_is_found_by_its_name() {
    let maps = "\
55d0c0a00000-55d0c0b00000 r-xp 00000000 fe:01 1 /usr/bin/hostile
7f0000000000-7f0000200000 rw-s 00000000 00:01 12 /memfd:dunlin (deleted)
7f0000300000-7f0000302000 rw-s 00000000 00:01 13 /memfd:dunlin-channel (deleted)
7f0000400000-7f0000402000 r--s 00000000 00:01 14 /memfd:dunlin-channel (deleted)
7f0000500000-7f0000502000 rw-p 00000000 00:00 0
";
    let found = areas(maps);
    let expected = [
        (0x7f00_0000_0000, 2 << 20, false),
        (0x7f00_0030_0000, 8 << 10, true),
    ];
    let expected = expected.map(|(start, len, is_channel)| Area {
        start,
        len,
        is_channel,
    });
    assert_eq!(found, expected);
}

#[test]
fn the_attackers_own_requests_are_found_and_changed() {
    let memory = File::options()
        .read(true)
        .write(true)
        .open("/proc/self/mem")
        .unwrap();
    let mut bytes = vec![7_u8; 4 << 10];
    bytes[1_024..1_040].copy_from_slice(&MARK);
    let area = Area {
        start: bytes.as_ptr() as u64,
        len: bytes.len() as u64,
        is_channel: true,
    };
    aim(&memory, &[area], &mut Rng::new(1));
    let bytes = std::hint::black_box(bytes);
    assert_ne!(bytes[1_024..1_040], MARK);
    assert!(bytes[..1_024].iter().all(|byte| *byte == 7));
    assert!(bytes[1_040..].iter().all(|byte| *byte == 7));
}
