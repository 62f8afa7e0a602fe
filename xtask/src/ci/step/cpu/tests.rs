//! The kernel's line is understood, whatever the program is called.

use super::*;

#[test]
fn state_and_times_are_read_after_the_name() {
    let line = |name: &str, state: &str| {
        format!("42 ({name}) {state} 1 42 42 0 -1 4194560 10 20 0 0 3 4 500 60 20 0 1 0 99 0 0")
    };
    let used = |has_ended| {
        Some(Used {
            time: Duration::from_millis(5670),
            has_ended,
        })
    };
    assert_eq!(parse(&line("bash", "S")), used(false));
    assert_eq!(parse(&line("a) Z (b", "R")), used(false));
    assert_eq!(parse(&line("bash", "Z")), used(true));
    assert_eq!(parse("42 (bash) S 1"), None);
}
