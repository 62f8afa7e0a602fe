//! Compares the counter with the kernel's clock, and tests readings that must be rejected.

use super::*;

#[test]
fn the_clock_runs_at_the_rate_of_the_monotonic_clock() {
    let mut clock = TscClock::new();
    // The machine may run other work between two readings; the best of several tries counts.
    let error = (0..20)
        .map(|_| {
            let (kernel, own) = (Instant::now(), clock.now());
            std::thread::sleep(Duration::from_millis(10));
            let own = clock.now().since(own);
            let kernel = Nanos::from(kernel.elapsed());
            own.0.abs_diff(kernel.0)
        })
        .min()
        .unwrap();
    assert!(error < 20_000, "{error} ns off in 10 ms");
}

#[test]
fn the_clock_never_goes_backwards() {
    let mut clock = TscClock::new();
    let mut last = clock.now();
    for _ in 0..100_000 {
        let now = clock.now();
        assert!(now >= last);
        last = now;
    }
}

#[test]
fn clocks_of_two_threads_share_an_origin() {
    let before = TscClock::new().now();
    let other = std::thread::spawn(|| TscClock::new().now()).join().unwrap();
    let after = TscClock::new().now();
    // Counters of two cores are synchronous to well below a microsecond.
    assert!(other + Nanos(1_000) >= before);
    assert!(other <= after + Nanos(1_000));
}

#[test]
fn the_kernel_clock_stands_in_for_a_counter_without_a_constant_rate() {
    let mut clock = TscClock {
        source: Source::Kernel {
            origin: Instant::now(),
        },
        last: Nanos::ZERO,
    };
    let first = clock.now();
    std::thread::sleep(Duration::from_millis(2));
    assert!(clock.now().since(first) >= Nanos::from_millis(2));
}

#[test]
fn a_counter_behind_the_origin_reads_as_the_last_time() {
    let ahead = counter::read().wrapping_add(1 << 50);
    let source = Source::Counter {
        origin: ahead,
        scale: 1 << 32,
    };
    let mut clock = TscClock {
        source,
        last: Nanos(7),
    };
    if TscClock::new().uses_counter() {
        assert_eq!(clock.now(), Nanos(7));
    }
}

#[test]
fn implausible_rates_are_refused() {
    assert_eq!(rate(1_000, 0), None);
    assert_eq!(rate(1_000_000, 1), None);
    assert_eq!(rate(1, 1_000), None);
    assert_eq!(rate(1_000, 2_000), Some(1 << 31));
}

#[test]
fn conversion_does_not_overflow_after_years() {
    let century = 100 * 365 * 86_400 * 1_000_000_000_u64;
    assert_eq!(scaled(century, 1 << 32), Nanos(century));
}
