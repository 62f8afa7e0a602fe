//! Figures in readable sizes.

use super::*;

#[test]
fn figures_have_three_digits_and_a_unit() {
    assert_eq!(figure(187.4, "ns"), "187 ns");
    assert_eq!(figure(3_512.0, "ns"), "3.51 µs");
    assert_eq!(figure(12_345_678.0, "ns"), "12.3 ms");
    assert_eq!(figure(37.4, "us"), "37.4 µs");
    assert_eq!(figure(1_056.0, "us"), "1.06 ms");
    assert_eq!(figure(0.0, "us"), "0.00 µs");
    assert_eq!(figure(104.2e6, "1/s"), "104 M/s");
    assert_eq!(figure(0.87e6, "1/s"), "870 k/s");
    assert_eq!(figure(28.04, "GB/s"), "28.0 GB/s");
    assert_eq!(figure(0.0, "percent"), "0.00 percent");
    assert_eq!(figure(0.97, ""), "0.97");
    assert_eq!(figure(3.0, "count"), "3");
}

#[test]
fn short_figures_have_the_digits_that_they_need() {
    assert_eq!(short(1_000.0, "ns"), "1 µs");
    assert_eq!(short(1_500.0, "ns"), "1.5 µs");
    assert_eq!(short(0.25, ""), "0.25");
    assert_eq!(short(20_000.0, ""), "20000");
    assert_eq!(short(1e6, "1/s"), "1 M/s");
    assert_eq!([short(32.0, "B"), short(32_768.0, "B")], ["32 B", "32 KiB"]);
    assert_eq!(short(f64::from(1 << 30), "B"), "1 GiB");
    assert_eq!(short(1e5, "B"), "100 kB", "no power of two");
    assert_eq!([short(0.0, "share"), short(1e-5, "share")], ["0", "10⁻⁵"]);
    assert_eq!(short(0.02, "share"), "0.02");
}
