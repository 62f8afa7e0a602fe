//! A request in the hands of its handler, which runs on the executor's threads.

use std::sync::Arc;

use dunlin_core::{Nanos, Session};
use dunlin_mailbox::{Lease, Slot};
use dunlin_msgbuf::MsgBuf;
use dunlin_service::{Error, IncomingRequest, Refusal};
use dunlin_wire::{ErrorCode, ReqType};

use crate::desk::Owner;
use crate::letter::{Arrived, End, Letter};

/// A request that a handler of an [`Offload`](crate::Offload) owns. Any thread may answer it; if it
/// is dropped without an answer, the client gets [`ErrorCode::HANDLER_FAILED`].
#[must_use = "dropping it answers the client with an error"]
#[derive(Debug)]
pub struct OffloadedRequest {
    owner: Arc<Owner>,
    slot: Slot,
    lease: Arc<Lease>,
    session: Session,
    req_type: ReqType,
    at: Nanos,
    /// `None` once the request has ended.
    body: Option<MsgBuf>,
    /// Whether the handler's future was polled.
    has_begun: bool,
}

impl OffloadedRequest {
    pub(crate) fn new(owner: Arc<Owner>, slot: Slot, lease: Arc<Lease>, request: Arrived) -> Self {
        Self {
            owner,
            slot,
            lease,
            session: request.session,
            req_type: request.req_type,
            at: request.at,
            body: Some(request.body),
            has_begun: false,
        }
    }

    /// The handler begins.
    pub(crate) fn on_begin(&mut self) {
        self.has_begun = true;
    }

    /// Ends the request, which must not use its slot afterwards.
    fn end(&mut self, write: impl FnOnce(&mut Letter)) {
        self.body = None;
        let desk = self.owner.desk();
        desk.mailbox().with(self.slot, write);
        // The mailbox returns false if the client has given the request up. Nothing needs to be
        // done then: the dispatcher will find the slot in the mailbox's list.
        desk.mailbox().end(self.slot);
        if self.lease.leave() {
            desk.release(self.slot);
        }
    }
}

impl IncomingRequest for OffloadedRequest {
    fn data(&self) -> &[u8] {
        self.body.as_ref().map_or(&[], MsgBuf::data)
    }

    fn req_type(&self) -> ReqType {
        self.req_type
    }

    fn session(&self) -> Session {
        self.session
    }

    /// The time at which the endpoint passed the request on; zero if it cannot have a deadline.
    fn now(&self) -> Nanos {
        self.at
    }

    fn reply(mut self, len: usize, write: impl FnOnce(&mut [u8])) -> Result<(), Error> {
        // `write` may panic, so the request ends only once it has returned.
        if let Some(body) = &mut self.body
            && body.resize(len).is_ok()
        {
            write(body.data_mut());
            if let Some(body) = self.body.take() {
                self.end(|letter| letter.on_end(End::Reply(body)));
            }
        } else {
            let mailbox = self.owner.desk().mailbox();
            let mut long = mailbox.with(self.slot, Letter::take_long);
            long.clear();
            long.resize(len, 0);
            write(&mut long);
            self.end(|letter| letter.on_long_reply(long));
        }
        Ok(())
    }

    fn reject(mut self, code: ErrorCode) -> Result<(), Error> {
        self.end(|letter| letter.on_end(End::Reject(code)));
        Ok(())
    }

    fn refuse(mut self, why: Refusal) -> Result<(), Error> {
        self.end(|letter| letter.on_end(End::Refuse(why)));
        Ok(())
    }
}

impl Drop for OffloadedRequest {
    fn drop(&mut self) {
        if self.body.is_none() {
            return;
        }
        let end = match self.has_begun {
            true => End::Reject(ErrorCode::HANDLER_FAILED),
            false => End::Refuse(Refusal::ShuttingDown),
        };
        self.end(|letter| letter.on_end(end));
    }
}
