//! The future of one handler, which an executor runs. It ends when the handler has answered, when
//! the handler panics, or when the client gives the request up.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use dunlin_mailbox::Lease;
use dunlin_service::SendService;

use crate::request::OffloadedRequest;

/// Runs the handler of a request. A panic ends only this request: dropping the request answers the
/// client.
pub(crate) async fn run<S: SendService<OffloadedRequest>>(
    service: Arc<S>,
    mut request: OffloadedRequest,
    lease: Arc<Lease>,
) {
    request.on_begin();
    let mut handler = pin!(Some(service.answer(request)));
    poll_fn(|context| {
        let polled = catch_unwind(AssertUnwindSafe(|| match handler.as_mut().as_pin_mut() {
            Some(handler) if !lease.is_given_up() => handler.poll(context).is_pending(),
            _ => false,
        }));
        let is_pending = matches!(polled, Ok(true));
        // For a handler that ends at its first poll, no waker is registered.
        if is_pending && lease.poll_given_up(context).is_pending() {
            return Poll::Pending;
        }
        // If the drop panics, the future is gone nevertheless.
        let _ = catch_unwind(AssertUnwindSafe(|| handler.set(None)));
        Poll::Ready(())
    })
    .await;
    lease.forget_task();
}
