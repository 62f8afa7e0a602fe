//! Limits for processes with few descriptors and with many.

use super::*;

fn limits(max_links: usize, descriptors: usize) -> (usize, usize) {
    let config = PlaneConfig {
        max_links,
        ..PlaneConfig::default()
    };
    let limits = within(config, descriptors);
    (limits.max_links, limits.max_half_open)
}

#[test]
fn half_of_the_descriptors_are_kept_for_sessions() {
    assert_eq!(limits(512, 64), (28, 4));
    assert_eq!(limits(512, 1024), (448, 64));
    assert_eq!(limits(512, 4096), (512, 64));
    assert_eq!(limits(4096, 20_000), (4096, 64));
    assert_eq!(limits(512, 1), (1, 1));
}
