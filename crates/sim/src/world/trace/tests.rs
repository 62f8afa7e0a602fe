//! Bounds of the trace.

use dunlin_core::Nanos;

use super::Trace;

#[test]
fn a_trace_that_is_off_never_builds_its_lines() {
    let mut trace = Trace::new(false);
    trace.note(Nanos(1), || unreachable!("the trace is off"));
    assert_eq!(trace.to_string(), "");
}

#[test]
fn the_newest_lines_are_kept_and_the_others_counted() {
    let mut trace = Trace::new(true);
    for n in 0..Trace::CAPACITY as u64 + 3 {
        trace.note(Nanos(n * 1000), || format!("line {n}"));
    }
    let text = trace.to_string();
    assert!(
        text.starts_with("… 3 earlier lines are not kept\n"),
        "{}",
        &text[..80]
    );
    assert_eq!(text.lines().count(), Trace::CAPACITY + 1);
    let last = Trace::CAPACITY + 2;
    assert!(text.ends_with(&format!("{last}.000 line {last}\n")));
}
