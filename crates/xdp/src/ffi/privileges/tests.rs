//! A thread that gives up its privileges.

use super::*;

/// The user of the test's daemon.
const NOBODY: u32 = 65_534;

/// A line of the calling thread's status, by its name.
fn text(name: &str) -> String {
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    line.unwrap().to_owned()
}

/// Such a line, as a set of capabilities.
fn line(name: &str) -> u64 {
    u64::from_str_radix(text(name).trim(), 16).unwrap()
}

#[test]
fn a_thread_keeps_no_other_capability() {
    // Capabilities belong to a thread, so the other tests keep theirs.
    let gave_up = std::thread::spawn(|| {
        let before = line("CapPrm:");
        let user = crate::ffi::descriptors::user();
        keep_those_of_xdp(NOBODY).unwrap();
        let kept = KEPT.iter().fold(0_u64, |all, bit| all | 1 << bit);
        assert_eq!(line("CapPrm:"), before & kept);
        assert_eq!(line("CapEff:"), before & kept);
        assert_eq!(line("CapInh:"), 0);
        if before >> SETPCAP & 1 != 0 {
            assert_eq!(line("CapBnd:") & !kept, 0);
        }
        assert_eq!(line("NoNewPrivs:"), 1);
        if user != 0 {
            assert_eq!(crate::ffi::descriptors::user(), user);
            return;
        }
        assert_eq!(crate::ffi::descriptors::user(), NOBODY);
        let all = format!("{NOBODY}\t{NOBODY}\t{NOBODY}\t{NOBODY}");
        for (name, numbers) in [("Uid:", &*all), ("Gid:", &*all), ("Groups:", "")] {
            assert_eq!(text(name).trim(), numbers, "{name}");
        }
        // A file of root that only root may read.
        let shadow = std::fs::read("/etc/shadow").map(|_| ()).unwrap_err();
        assert_eq!(shadow.kind(), io::ErrorKind::PermissionDenied);
        // It cannot become root again.
        assert!(become_user(0).is_err());
    });
    gave_up.join().unwrap();
}
