//! The end of a desk's last owner, and calls that are posted before and after it.

use std::task::Context;

use super::*;

#[test]
fn a_call_that_comes_when_no_owner_is_left_ends() {
    let desk = Desk::new(4);
    let dispatcher = Owner::new(&desk);
    let handler = Arc::clone(&dispatcher);
    let context = Context::from_waker(Waker::noop());
    let post = || {
        let slot = desk.mailbox().hold().expect("there are four");
        desk.mailbox().post(slot, &context);
        slot
    };
    drop(dispatcher);
    let early = post();
    assert!(desk.mailbox().poll_end(early, &context).is_pending());
    drop(handler);
    let late = post();
    assert!(desk.mailbox().poll_end(early, &context).is_ready());
    assert!(desk.mailbox().poll_end(late, &context).is_ready());
}
