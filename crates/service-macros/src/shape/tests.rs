//! Types that have no shape, with the compiler's errors. The tests of `dunlin-service` use the
//! shapes.

use super::*;

fn error(item: &str) -> String {
    let code = code(item.parse().unwrap());
    code.err()
        .map_or_else(String::new, |error| error.to_string())
}

#[test]
fn other_types_than_structures_are_refused() {
    let said = "a message of a fixed layout is a `struct`, and so is each of its parts";
    assert_eq!(error("enum Colour { Red }"), said);
    assert_eq!(error("union Either { a: u8, b: i8 }"), said);
    assert_eq!(error("struct Pair { a: u8 }"), "");
    let wrong = "#[shape(path = a)] struct Pair { a: u8 }";
    assert_eq!(error(wrong), "expected `crate = ...`");
}
