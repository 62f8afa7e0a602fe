//! A thread that gives up its privileges.

use super::*;

/// The capabilities of the calling thread, by the name of their line.
fn line(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
    let bits = status.lines().find_map(|line| line.strip_prefix(name));
    u64::from_str_radix(bits.unwrap().trim(), 16).unwrap()
}

#[test]
fn a_thread_keeps_no_other_capability() {
    // Capabilities belong to a thread, so the other tests keep theirs.
    let gave_up = std::thread::spawn(|| {
        let before = line("CapPrm:");
        keep_those_of_xdp().unwrap();
        let kept = KEPT.iter().fold(0_u64, |all, bit| all | 1 << bit);
        assert_eq!(line("CapPrm:"), before & kept);
        assert_eq!(line("CapEff:"), before & kept);
        assert_eq!(line("CapInh:"), 0);
        if before >> SETPCAP & 1 != 0 {
            assert_eq!(line("CapBnd:") & !kept, 0);
        }
        assert_eq!(line("NoNewPrivs:"), 1);
    });
    gave_up.join().unwrap();
}
