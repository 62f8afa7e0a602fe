//! The service as its clients see it. All tests are in one program, because each program of tests
//! compiles its endpoints again.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod bursts;
mod channels;
mod fleet;
mod history;
mod lossless;
mod small_messages;
mod transports;

/// Not a test: plays the role that the parent's test has set, if this process is a child.
#[test]
fn child() {
    if let Some(role) = dunlin_testkit::child::role() {
        history::play(&role);
    }
}
