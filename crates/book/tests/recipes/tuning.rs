//! The program of `docs/tuning.md`.

mod spin {
    include!(concat!(env!("OUT_DIR"), "/tuning_1.rs"));

    use std::time::{Duration, Instant};

    #[test]
    fn an_endpoint_that_spins_never_blocks() {
        let nexus = Nexus::bind("127.0.0.1:0").unwrap();
        let mut rpc = impatient(&nexus).unwrap();
        let blocked = times_blocked();
        // An endpoint with the default blocks after 50 µs.
        let start = Instant::now();
        while start.elapsed() < Duration::from_millis(5) {
            rpc.run_once();
        }
        assert_eq!(times_blocked(), blocked);
    }

    /// How often this thread has waited in the kernel.
    fn times_blocked() -> u64 {
        let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
        let mut lines = status.lines();
        let times = lines.find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        times.unwrap().trim().parse().unwrap()
    }
}
