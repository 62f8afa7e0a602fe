//! How often a thread looks at its sockets, counted in iterations.

use super::Gap;

/// The iterations with a look among the first 100.
fn looks(is_quiet: impl Fn(u32) -> bool) -> Vec<u32> {
    let mut gap = Gap::default();
    let all = 1..=100;
    all.filter(|number| gap.on_iteration(is_quiet(*number)))
        .collect()
}

#[test]
fn a_busy_thread_looks_in_every_32nd_iteration_and_a_quiet_one_in_every_eighth() {
    assert_eq!(looks(|_| false), [32, 64, 96]);
    let quiet: Vec<u32> = (8..=96).step_by(8).collect();
    assert_eq!(looks(|_| true), quiet);
    // 16 busy iterations and four quiet ones make a gap.
    assert_eq!(looks(|number| number > 16)[0], 20);
}
