//! The service over simulated endpoints, and histories of real processes. Tests over endpoints of a
//! nexus are in the package `dunlin-service-tests`.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod fleet;
mod history;

/// Not a test: plays the role that the parent's test has set, if this process is a child.
#[test]
fn child() {
    if let Some(role) = dunlin_testkit::child::role() {
        history::play(&role);
    }
}
