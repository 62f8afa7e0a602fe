//! Each cause is printed once.

use anyhow::Context;

use super::*;

#[test]
fn a_cause_that_an_error_already_contains_is_printed_once() {
    let full = || io::Error::other("the disk is full");
    let error = Err::<(), _>(full()).context("cannot write x.json");
    let said = with_causes(&error.unwrap_err());
    assert_eq!(said, "cannot write x.json: the disk is full");
    let error = Err::<(), _>(full()).context("cannot write: the disk is full; delete something");
    let said = with_causes(&error.unwrap_err());
    assert_eq!(said, "cannot write: the disk is full; delete something");
}
