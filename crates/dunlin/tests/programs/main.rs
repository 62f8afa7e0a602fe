//! Whole programs, as a user writes them. All tests are in one program, because each program of
//! tests compiles its endpoints again.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod channel;
mod channel_allocations;
mod end_to_end;
mod local;
mod meeting;
mod names;
mod offload;
mod readme;
mod server;
mod typed;

use dunlin_testkit::child::role;
use dunlin_testkit::counting::Counting;

/// It counts only in threads that ask for that.
#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Not a test: plays the role that the parent's test has set, if this process is a child.
#[test]
fn child() {
    end_to_end::play_if_asked();
    let Some(role) = role() else {
        return;
    };
    match role.split(' ').next() {
        Some("Drained" | "Recorded") => server::play(&role),
        _ => channel::play(&role),
    }
}
