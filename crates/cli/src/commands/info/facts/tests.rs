//! System files are read correctly.

use super::{Fact, State, chosen, field, size};

#[test]
fn files_of_the_system_are_read() {
    let text = "model name\t: A processor\nflags\t\t: fpu tsc\nHugePages_Free:        3\n";
    assert_eq!(field(text, "model name"), Some("A processor"));
    assert_eq!(field(text, "HugePages_Free"), Some("3"));
    assert_eq!(field(text, "HugePages"), None);
    assert_eq!(chosen("always [madvise] never"), Some("madvise"));
    assert_eq!(chosen("tsc"), None);
}

#[test]
fn sizes_are_short() {
    for (bytes, text) in [
        (0, "0 B"),
        (1023, "1023 B"),
        (1536, "1.5 KiB"),
        (4 << 20, "4 MiB"),
        (u64::MAX, "16777216 TiB"),
    ] {
        assert_eq!(size(bytes), text);
    }
}

#[test]
fn only_facts_that_are_not_good_have_advice() {
    let good = Fact::good("a", "b").advise(true, "c");
    assert!(good.state == State::Good && good.advice.is_none());
    let bad = Fact::good("a", "b").advise(false, "c");
    assert_eq!(
        (bad.state, bad.advice.as_deref()),
        (State::Improve, Some("c"))
    );
}
