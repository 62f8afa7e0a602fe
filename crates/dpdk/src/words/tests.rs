//! Descriptions of errors.

use super::*;

#[test]
fn an_error_has_the_last_lines() {
    let text = describe(-22, "one\ntwo\n\nthree\nfour\nfive\n");
    assert!(text.ends_with("(two; three; four; five)"), "{text}");
    assert_eq!(
        describe(-22, ""),
        io::Error::from_raw_os_error(22).to_string()
    );
}
