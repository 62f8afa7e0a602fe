//! The attempts of a channel: each is a call of the endpoint, or waits for its link's turn.

use dunlin_channel::{AttemptId, CallId, Fault, LinkId, Outcome};
use dunlin_core::{CallErrorKind, CallOptions, Nanos, RpcError, Session, Tag};
use dunlin_msgbuf::{AllocError, MAX_MESSAGE, MsgBuf};
use dunlin_wire::Ran;

use super::{Around, Attempt, Driver, Issued, put};
use crate::trunks::Ends;

impl Driver {
    /// Issues an attempt, or lets it wait for its link's turn. If the link is gone, the attempt
    /// fails, and its failure reports the loss of the link.
    pub(super) fn send(&mut self, attempt: Attempt, around: &mut Around<'_>) {
        let index = attempt.id.index();
        put(&mut self.attempts, index, attempt);
        let (link, member) = (attempt.link, self.member(attempt.link));
        match self.links.trunk(link) {
            Some(trunk) if self.links.has_waiting(link) || !around.trunks.takes(trunk, member) => {
                self.links.wait(link, attempt.id);
                let ends = &mut Ends(around.rpc);
                around.trunks.on_wait(trunk, member, ends, around.now);
            }
            _ => self.issue(index, around),
        }
    }

    fn issue(&mut self, index: usize, around: &mut Around<'_>) {
        let mut attempt = self.attempts[index].expect("it was put there");
        let member = self.member(attempt.link);
        let trunk = self.links.trunk(attempt.link);
        let session = trunk.and_then(|trunk| around.trunks.on_attempt(trunk, member));
        let gone = Fault::NotTaken(CallErrorKind::NoSession);
        let issued = session.ok_or(gone).and_then(|session| {
            let issued = self.try_issue(index, &attempt, session, around);
            issued.inspect_err(|_| {
                let ends = &mut Ends(around.rpc);
                around.trunks.on_attempt_end(member, session, ends);
            })
        });
        match issued {
            Ok(issued) => {
                self.take_place(index, attempt.call, around);
                self.machine.on_issued(attempt.id);
                attempt.issued = Some(issued);
                self.attempts[index] = Some(attempt);
            }
            Err(fault) => {
                self.attempts[index] = None;
                self.machine
                    .on_end(attempt.id, Outcome::Failed(fault), around.now);
            }
        }
    }

    /// Gives back the room of an attempt that has ended.
    pub(super) fn give_back(&self, attempt: &Attempt, around: &mut Around<'_>) {
        if let Some(issued) = attempt.issued {
            let member = self.member(attempt.link);
            let trunks = &mut *around.trunks;
            trunks.on_attempt_end(member, issued.session, &mut Ends(around.rpc));
        }
    }

    fn try_issue(
        &self,
        index: usize,
        attempt: &Attempt,
        session: Session,
        around: &mut Around<'_>,
    ) -> Result<Issued, Fault> {
        let seat = self.seats.get(attempt.call.index());
        let seat = seat.and_then(Option::as_ref);
        let seat = seat.filter(|seat| seat.id == attempt.call);
        let slot = seat
            .ok_or(Fault::NotSent(RpcError::Cancelled(Ran::No)))?
            .slot;
        let left = attempt.deadline.map(|end| end.since(around.now));
        let rpc = &mut *around.rpc;
        let hedges = self.hedges;
        let (request, room) = around.mailbox.with(slot, |letter| {
            letter.hops.on_attempt(|| rpc.cx_again().peer(session));
            let request = letter.request(left, hedges, |len| rpc.buf(len));
            (request, letter.room)
        });
        let (req_type, request) = request.map_err(|error| no_memory(&error))?;
        let response = match rpc.buf(room) {
            Ok(response) => response,
            Err(error) => {
                self.return_request(attempt.call, request, around);
                return Err(no_memory(&error));
            }
        };
        let options = CallOptions { deadline: left };
        let tag = tag_of(self.id, index);
        let taken = rpc.call_with(session, req_type, request, response, tag, options);
        match taken {
            Ok(call) => Ok(Issued { call, session }),
            Err(refused) => {
                rpc.cx_again().recycle([refused.response]);
                self.return_request(attempt.call, refused.request, around);
                Err(Fault::NotTaken(refused.kind))
            }
        }
    }

    /// Returns the request of an attempt to the slot of its call, for a repeat or for the next call
    /// there.
    pub(super) fn return_request(&self, call: CallId, request: MsgBuf, around: &mut Around<'_>) {
        let spare = match self.slot_of(call) {
            Some(slot) => around
                .mailbox
                .with(slot, |letter| letter.return_request(request)),
            None => Some(request),
        };
        around.rpc.cx_again().recycle(spare);
    }

    /// It is the turn of a link: issues the attempt that waits longest.
    pub(crate) fn on_turn(&mut self, link: LinkId, around: &mut Around<'_>) {
        if let Some(next) = self.links.next_waiting(link) {
            self.issue(next.index(), around);
        }
        if self.links.has_waiting(link)
            && let Some(trunk) = self.links.trunk(link)
        {
            let member = self.member(link);
            let ends = &mut Ends(around.rpc);
            around.trunks.on_wait(trunk, member, ends, around.now);
        }
    }

    /// Moves attempts that wait for other links to the same server to this link, while it has room.
    pub(super) fn spread(&mut self, link: LinkId, around: &mut Around<'_>) {
        while let Some(next) = self.links.waiting_beside(link)
            && self.takes(link, around)
            && let Some(to) = self.machine.move_waiting(next)
        {
            let attempt = self.attempts[next.index()].expect("it waits");
            self.links.stop_waiting(attempt.link, next);
            self.send(
                Attempt {
                    link: to,
                    ..attempt
                },
                around,
            );
            // Otherwise attempts would move back and forth between links without room.
            if to != link {
                return;
            }
        }
    }

    /// Whether an attempt on this link would begin now.
    fn takes(&self, link: LinkId, around: &Around<'_>) -> bool {
        let member = self.member(link);
        let trunk = self.links.trunk(link);
        trunk.is_some_and(|trunk| around.trunks.takes(trunk, member))
    }

    pub(super) fn cancel(&mut self, id: AttemptId, around: &mut Around<'_>) {
        let attempt = self.attempts.get_mut(id.index());
        let Some(attempt) = attempt.filter(|at| at.is_some_and(|at| at.id == id)) else {
            return;
        };
        match attempt.and_then(|attempt| attempt.issued) {
            // The endpoint reports the end of this call, as of others, or has reported it already.
            Some(issued) => {
                let (index, call) = (id.index(), attempt.expect("it was issued").call);
                self.take_place(index, call, around);
                let _ = around.rpc.cx().cancel(issued.call);
            }
            None => self.never_sent(id, RpcError::Cancelled(Ran::No), around.now),
        }
    }

    /// Ends an attempt that waited for its link.
    pub(super) fn never_sent(&mut self, id: AttemptId, error: RpcError, now: Nanos) {
        let place = self.attempts.get_mut(id.index());
        let attempt = place.and_then(|place| place.take_if(|attempt| attempt.id == id));
        if let Some(attempt) = attempt {
            self.links.stop_waiting(attempt.link, id);
            self.machine
                .on_end(id, Outcome::Failed(Fault::NotSent(error)), now);
        }
    }
}

fn no_memory(error: &AllocError) -> Fault {
    Fault::NotTaken(match error {
        AllocError::TooLarge => CallErrorKind::TooLarge {
            limit: u32::try_from(MAX_MESSAGE).unwrap_or(u32::MAX),
        },
        AllocError::Limit | AllocError::NoMemory | AllocError::TooManyRegions => {
            CallErrorKind::Overloaded
        }
    })
}

/// The tag of an attempt's call: the channel, and the attempt's index there.
fn tag_of(channel: u32, index: usize) -> Tag {
    Tag(u64::from(channel) << 32 | index as u64)
}
