//! Shares of threads, and limits in the system's files.

use std::collections::BTreeMap;
use std::path::Path;

use super::{group_limit, named, share, total};

const MIB: usize = 1 << 20;

#[test]
fn a_share_has_whole_huge_pages_unless_it_is_small() {
    assert_eq!(share(1 << 30, 1), 1 << 30);
    assert_eq!(share(1 << 30, 3), 340 * MIB);
    assert_eq!(share(1_000_000_000, 1), 952 * MIB);
    assert_eq!(share(64 * MIB + 5, 2), 32 * MIB);
    assert_eq!(share(21 * MIB, 1), 20 * MIB);
    for small in [65_536, MIB, 2 * MIB, 3 * MIB, 15 * MIB] {
        assert_eq!(share(small, 1), small);
    }
}

#[test]
fn the_greeting_names_the_pages() {
    assert_eq!(named(0, 2), "ordinary pages");
    assert_eq!(named(2, 2), "reserved huge pages");
    assert_eq!(named(1, 2), "reserved huge pages for 1 of 2 threads");
}

#[test]
fn the_memory_of_the_machine_is_read() {
    let text = "MemTotal:       16384256 kB\nMemFree:         123 kB\n";
    assert_eq!(total(text), Some(16_384_256 * 1024));
    assert_eq!(total("MemFree: 1 kB\n"), None);
}

/// The limit that these files show.
fn limit(files: &[(&str, &str)]) -> Option<usize> {
    let files: BTreeMap<&str, &str> = files.iter().copied().collect();
    let text = |path: &Path| files.get(path.to_str()?).map(|text| (*text).to_owned());
    group_limit(text)
}

#[test]
fn the_lowest_limit_of_the_control_groups_is_read() {
    let second = ("/proc/self/cgroup", "0::/user/server\n");
    let root = ("/sys/fs/cgroup/memory.max", "8000\n");
    let user = ("/sys/fs/cgroup/user/memory.max", "5000\n");
    let own = ("/sys/fs/cgroup/user/server/memory.max", "max\n");
    assert_eq!(limit(&[second, root, user, own]), Some(5000));
    assert_eq!(limit(&[second, root, own]), Some(8000));
    assert_eq!(limit(&[second, own]), None);
    assert_eq!(limit(&[root, own]), None);
    // In a container, the root is the container's group.
    assert_eq!(limit(&[("/proc/self/cgroup", "0::/\n"), root]), Some(8000));
    let first = (
        "/proc/self/cgroup",
        "5:cpu:/a\n4:hugetlb,memory:/b/c\n0::/\n",
    );
    let files = [
        first,
        ("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "10\n"),
        ("/sys/fs/cgroup/memory/b/memory.limit_in_bytes", "70000\n"),
        ("/sys/fs/cgroup/memory/b/c/memory.limit_in_bytes", "90000\n"),
    ];
    assert_eq!(limit(&files), Some(70_000));
}
