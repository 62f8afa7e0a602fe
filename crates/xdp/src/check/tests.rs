//! Any program of steps, and the steps with which a hostile kernel would begin.

use proptest::prelude::*;

use super::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 256 }))]
    #[test]
    fn any_program_leaves_the_rings_whole(
        program in proptest::collection::vec(any::<u8>(), 0..if cfg!(miri) { 40 } else { 600 }),
    ) {
        rings(&program);
    }
}

#[test]
fn an_honest_kernel_carries_datagrams_of_both_endpoints() {
    let mut program = Vec::new();
    for round in 0..if cfg!(miri) { 2 } else { 60 } {
        for side in [0, 0x80] {
            // Sends a datagram of several pieces, short packets, and packets of the lane; then one
            // comes.
            program.extend([side | 5, 1, 0x10, round, 0x20, 3]);
            program.extend([side | 3, 40, side | 4, round, side | 7, 0]);
            program.extend([side | 8, round, 1, round, side, 32]);
            program.extend([side | 9, 63 | (round & 1) << 6]);
            // Sends a datagram of four pieces while two frames are free, and the kernel has given
            // others back.
            program.extend([side | 3, 232, side | 7, 0, side | 9, 63]);
            program.extend([side | 5, 0, 0x36, 0xB0, side | 7, 0, side | 9, 63]);
        }
    }
    rings(&program);
}

#[test]
fn the_rings_survive_lies_of_every_kind() {
    let kinds: [&[u8]; 10] = [
        // Entries: outside, too long, with strange options, of the other half.
        &[10, 1, 255, 255, 255, 255, 255, 255, 255, 255, 0, 60],
        &[10, 2, 3, 0, 255, 255, 255, 255],
        &[10, 12, 3, 0, 0, 60, 1, 2, 3, 4],
        &[10, 0, 100, 0, 0, 60],
        &[11, 1, 255, 255, 255, 255, 255, 255, 255, 255],
        // Positions.
        &[12, 4, 0x80, 0, 0, 0],
        &[12, 5, 0x80, 0, 0, 0],
        &[12, 6, 0x80, 0, 0, 0],
        &[12, 7, 0x80, 0, 0, 0],
        &[12, 10, 5],
    ];
    for kind in kinds {
        let work = [3, 40, 7, 0, 8, 0, 1, 0, 0, 32, 9, 63, 14, 3];
        rings(&[&work, kind, &work, kind, &work].concat());
    }
}
