//! Ends of calls, which lead to a result for the program, another attempt, or the next slice of a
//! long value.

use dunlin_core::{Cx, Done, RpcError, Session};
use dunlin_msgbuf::MsgBuf;
use dunlin_store::SLICE;
use dunlin_wire::{ErrorCode, Ran};

use super::calls::{Call, Job, Long, Owner};
use super::end::{End, Found, Item, Reply};
use super::machine::Client;
use crate::error::Error;
use crate::wire::{Answer, FoundItem, Map, Request, Status, WHOLE, short_len};

/// Bytes before the value in an answer with a stamp.
const LONG_HEAD: usize = 32;

impl Client {
    /// Takes the end of a call of the endpoint. Returns it if the call is not this client's.
    #[inline]
    pub fn on_done(&mut self, done: Done, cx: &mut Cx<'_>) -> Option<Done> {
        let Some(place) = self.calls.find(done.tag) else {
            return Some(done);
        };
        // The endpoint's backlog now has a free place.
        self.is_stirred |= !self.waiting.is_empty();
        // Field by field: a move as a whole would go through memory.
        let Done {
            session,
            tag: _,
            result,
            request,
            response,
        } = done;
        let token = self.calls.plain_token(place).filter(|_| result.is_ok());
        let Some(token) = token else {
            self.on_other((place, session), result, [request, response], cx);
            return None;
        };
        let reply = if FoundItem::is_whole(response.data()) {
            let found = Found::in_message(response);
            #[cfg(feature = "mutants")]
            let found = self.old_read(&request, found);
            Reply::Found(found)
        } else if let Some(version) = Answer::written(response.data()) {
            cx.recycle(Some(response));
            Reply::Written(version)
        } else {
            self.on_other((place, session), result, [request, response], cx);
            return None;
        };
        cx.recycle(self.calls.end_plain(place, request));
        let result = Ok(reply);
        self.ends.push(End { token, result });
        None
    }

    /// Handles any other end of a call.
    #[inline(never)]
    fn on_other(
        &mut self,
        (place, session): (u32, Session),
        result: Result<(), RpcError>,
        [request, response]: [MsgBuf; 2],
        cx: &mut Cx<'_>,
    ) {
        self.take_back(place, request);
        match result {
            Ok(()) => self.on_answer(place, session, response, cx),
            Err(error) => {
                cx.recycle([response]);
                self.on_failure(place, session, error, cx);
            }
        }
    }

    fn on_answer(&mut self, place: u32, session: Session, response: MsgBuf, cx: &mut Cx<'_>) {
        let call = self.calls.get_mut(place);
        match &call.job {
            Job::Plain(_) | Job::Part(_) if call.req_type != WHOLE => {
                self.on_keyed(place, session, response, cx);
            }
            Job::Plain(_) | Job::Part(_) => self.on_whole(place, session, response, cx),
            Job::Greeting => {
                self.on_greeting(place, session, &response, cx);
                cx.recycle([response]);
            }
            Job::Long(..) => {
                self.on_slice(place, session, &response, cx);
                cx.recycle([response]);
            }
            Job::Keys(..) => {
                self.on_records(place, session, &response, cx);
                cx.recycle([response]);
            }
        }
    }

    /// The answer to an operation on one key.
    fn on_keyed(&mut self, place: u32, session: Session, response: MsgBuf, cx: &mut Cx<'_>) {
        let result = match Answer::decode(response.data()) {
            Ok(Answer::Found(item)) if item.is_long() => {
                let long = Box::new(Long::begin(&item));
                cx.recycle([response]);
                return self.on_long(place, long, cx);
            }
            // A part of a get of many; the other kinds were handled above.
            Ok(Answer::Found(_)) => {
                let found = Found::in_message(response);
                return self.succeed(place, Reply::Found(found), cx);
            }
            Ok(Answer::Refused(Status::MapChanged)) => {
                cx.recycle([response]);
                return self.on_map_changed(place, session, cx);
            }
            Ok(Answer::Written(version)) => Ok(Reply::Written(version)),
            Ok(Answer::Counted(number, version)) => Ok(Reply::Counted(number, version)),
            Ok(Answer::Done) => Ok(Reply::Done),
            Ok(Answer::Refused(Status::Missing)) if self.calls.get_mut(place).is_read => {
                Ok(Reply::Missing)
            }
            Ok(Answer::Refused(status)) => Err(Error::of_status(status)),
            Ok(Answer::Slice(_)) | Err(_) => Err(Error::Incompatible),
        };
        cx.recycle([response]);
        match result {
            Ok(reply) => self.succeed(place, reply, cx),
            Err(error) => self.fail(place, error, cx),
        }
    }

    fn on_whole(&mut self, place: u32, session: Session, response: MsgBuf, cx: &mut Cx<'_>) {
        let reply = Reply::of_whole(response.data());
        cx.recycle([response]);
        match reply {
            Ok(reply) => self.succeed(place, reply, cx),
            Err(Status::MapChanged) => self.on_map_changed(place, session, cx),
            Err(status) => self.fail(place, Error::of_status(status), cx),
        }
    }

    /// Handles the answer that the server has another map: the client asks for it, and the call
    /// waits.
    pub(super) fn on_map_changed(&mut self, place: u32, session: Session, cx: &mut Cx<'_>) {
        self.wait(place);
        if self.lanes.on_map_changed(session) {
            self.greet(session, cx);
        }
    }

    fn on_greeting(&mut self, place: u32, session: Session, response: &MsgBuf, cx: &mut Cx<'_>) {
        let call = self.calls.remove(place);
        cx.recycle(call.request);
        let Ok((map, _)) = Map::decode(response.data()) else {
            self.end_all(Error::Incompatible, cx);
            return self.give_up(session, cx);
        };
        #[cfg(feature = "mutants")]
        let map = self.old_map(map);
        self.lanes.on_greeted(session, map.tag());
        if self.map.as_ref() != Some(&map) {
            self.lanes.need(map.endpoints(), map.tag());
            self.map = Some(map);
            self.regroup(cx);
        }
        self.is_stirred = true;
    }

    /// The map to use. With a planted bug, the client uses its first map forever.
    #[cfg(feature = "mutants")]
    fn old_map(&self, map: Map) -> Map {
        let is_planted = self.shows(super::options::Mutant::OldMap);
        self.map.clone().filter(|_| is_planted).unwrap_or(map)
    }

    /// The item to return. With a planted bug, it is the item of the previous get, if that had the
    /// same key.
    #[cfg(feature = "mutants")]
    fn old_read(&mut self, request: &MsgBuf, found: Found) -> Found {
        match Request::decode(request.data()) {
            Ok((_, request)) if self.options.mutant == Some(super::options::Mutant::OldRead) => {
                let (key, item) = (request.key().to_vec(), found.into_item());
                let old = self.read.replace((key.clone(), item.clone()));
                Found::joined(old.filter(|old| old.0 == key).map_or(item, |old| old.1))
            }
            _ => found,
        }
    }

    /// Begins to read the slices of a value that is longer than an answer, one by one.
    fn on_long(&mut self, place: u32, long: Box<Long>, cx: &mut Cx<'_>) {
        let call = self.calls.get_mut(place);
        let owner = match call.job {
            Job::Plain(token) => Owner::Program(token),
            Job::Part(part) => Owner::Part(part),
            _ => unreachable!("only gets have long values"),
        };
        call.job = Job::Long(owner, long);
        self.next_slice(place, cx);
    }

    /// Asks for the bytes that follow.
    fn next_slice(&mut self, place: u32, cx: &mut Cx<'_>) {
        let call = self.calls.get_mut(place);
        let Job::Long(_, long) = &call.job else {
            return;
        };
        let (stamp, from) = (long.stamp, long.value.len());
        let from = u32::try_from(from).expect("a value has at most 1 MiB");
        let rewritten = rewrite(call, |key| Request::Slice { key, stamp, from }, cx);
        call.room = short_len(0) + SLICE;
        match rewritten {
            Ok(()) => self.try_place(place, cx),
            Err(error) => self.fail(place, error, cx),
        }
    }

    fn on_slice(&mut self, place: u32, session: Session, response: &MsgBuf, cx: &mut Cx<'_>) {
        let call = self.calls.get_mut(place);
        let Job::Long(owner, long) = &mut call.job else {
            return;
        };
        match Answer::decode(response.data()) {
            Ok(Answer::Slice(bytes)) if long.take(bytes) => {
                if long.value.len() < long.len {
                    return self.next_slice(place, cx);
                }
                let item = long.end();
                self.succeed(place, Reply::Found(Found::joined(item)), cx);
            }
            // Another value has replaced this one, or the item is gone: the get starts over.
            Ok(Answer::Refused(Status::Gone)) => {
                call.job = match *owner {
                    Owner::Program(token) => Job::Plain(token),
                    Owner::Part(part) => Job::Part(part),
                };
                match rewrite(call, |key| Request::Get { key }, cx) {
                    Ok(()) => {
                        call.room = LONG_HEAD + SLICE;
                        self.try_place(place, cx);
                    }
                    Err(error) => self.fail(place, error, cx),
                }
            }
            Ok(Answer::Refused(Status::MapChanged)) => self.on_map_changed(place, session, cx),
            _ => self.fail(place, Error::Incompatible, cx),
        }
    }

    /// Handles a call that has ended without an answer.
    fn on_failure(&mut self, place: u32, session: Session, error: RpcError, cx: &mut Cx<'_>) {
        let call = self.calls.get_mut(place);
        if matches!(call.job, Job::Greeting) {
            return self.on_greeting_failed(place, session, error, cx);
        }
        match error {
            RpcError::ResponseTooLarge { size } if call.is_read && size as usize > call.room => {
                call.room = size as usize;
                self.try_place(place, cx);
            }
            RpcError::Rejected(ErrorCode::UNDECODABLE | ErrorCode::UNKNOWN_TYPE, _) => {
                self.fail(place, Error::Incompatible, cx);
            }
            RpcError::TooLarge { limit } => self.on_too_large(place, limit as usize, cx),
            RpcError::Rejected(ErrorCode::TOO_LARGE | ErrorCode::RESPONSE_TOO_LARGE, _) => {
                let request = self.calls.get_mut(place).request.as_ref();
                let asked = request.map_or(0, |request| request.data().len());
                self.on_too_large(place, asked / 2, cx);
            }
            RpcError::DeadlinePassed(_) if call.is_read => {
                self.fail(place, Error::DeadlinePassed, cx);
            }
            _ if self.try_later(place, error, cx) => {}
            _ if error.ran() == Ran::No || self.calls.get_mut(place).is_read => {
                self.fail(place, Error::Unavailable, cx);
            }
            _ => self.fail(place, Error::Unknown, cx),
        }
    }

    /// Whether a call whose result is unknown may run a second time.
    pub(super) fn may_repeat(&mut self, place: u32) -> bool {
        #[cfg(feature = "mutants")]
        if self.shows(super::options::Mutant::RepeatedWrite) {
            return true;
        }
        self.calls.get_mut(place).is_read
    }

    fn on_greeting_failed(
        &mut self,
        place: u32,
        session: Session,
        error: RpcError,
        cx: &mut Cx<'_>,
    ) {
        let call = self.calls.remove(place);
        cx.recycle(call.request);
        let is_stranger = matches!(error, RpcError::Rejected(ErrorCode::UNKNOWN_TYPE, _));
        // A server may have restarted with fewer partitions, so that an endpoint has none. The next
        // map from the first endpoint shows that.
        if is_stranger && self.lanes.is_first(session) {
            self.end_all(Error::Incompatible, cx);
        }
        self.give_up(session, cx);
    }

    /// Ends all waiting operations, because no server understands this client, or there is no
    /// server.
    pub(crate) fn end_all(&mut self, error: Error, cx: &mut Cx<'_>) {
        while let Some(place) = self.waiting.pop_front() {
            self.fail_or_miss(place, error, cx);
        }
        self.end_multis(error);
    }

    /// Fails a call for which there is no server, or leaves its keys out of a get that allows this.
    pub(super) fn fail_or_miss(&mut self, place: u32, error: Error, cx: &mut Cx<'_>) {
        let multi = match self.calls.get_mut(place).job {
            Job::Keys(multi, _) => Some(multi),
            Job::Part(part) | Job::Long(Owner::Part(part), _) => Some(part.multi),
            Job::Greeting | Job::Plain(_) | Job::Long(Owner::Program(_), _) => None,
        };
        match multi {
            Some(multi) if self.multis.get_mut(multi).may_miss(error) => {
                let call = self.calls.remove(place);
                cx.recycle(call.request);
                self.on_left_out(multi);
            }
            _ => self.fail(place, error, cx),
        }
    }

    /// Ends the operation of a call with a result.
    pub(super) fn succeed(&mut self, place: u32, reply: Reply, cx: &mut Cx<'_>) {
        self.end(place, Ok(reply), cx);
    }

    /// Ends the operation of a call with an error.
    pub(super) fn fail(&mut self, place: u32, error: Error, cx: &mut Cx<'_>) {
        self.end(place, Err(error), cx);
    }

    fn end(&mut self, place: u32, result: Result<Reply, Error>, cx: &mut Cx<'_>) {
        let call = self.calls.remove(place);
        cx.recycle(call.request);
        match call.job {
            Job::Plain(token) | Job::Long(Owner::Program(token), _) => {
                self.ends.push(End { token, result });
            }
            Job::Part(part) | Job::Long(Owner::Part(part), _) => self.on_part(part, result),
            Job::Keys(multi, _) => self.on_keys_failed(multi, result.err()),
            Job::Greeting => {}
        }
    }

    /// Adds the end of a get of many.
    pub(super) fn push_end(&mut self, end: End) {
        self.ends.push(end);
    }
}

impl Long {
    fn begin(item: &FoundItem<'_>) -> Self {
        let mut value = Vec::with_capacity(item.len as usize);
        value.extend_from_slice(item.value);
        Self {
            flags: item.flags,
            version: item.version,
            lifetime: item.lifetime,
            stamp: item.stamp,
            len: item.len as usize,
            value,
        }
    }

    /// Takes the bytes that follow. False: there are none, or too many.
    fn take(&mut self, bytes: &[u8]) -> bool {
        let fits = !bytes.is_empty() && self.value.len() + bytes.len() <= self.len;
        if fits {
            self.value.extend_from_slice(bytes);
        }
        fits
    }

    fn end(&mut self) -> Item {
        Item {
            flags: self.flags,
            version: self.version,
            lifetime: self.lifetime,
            value: std::mem::take(&mut self.value),
        }
    }
}

/// Puts another request for the same key into a call.
fn rewrite(
    call: &mut Call,
    make: impl for<'b> FnOnce(&'b [u8]) -> Request<'b>,
    cx: &mut Cx<'_>,
) -> Result<(), Error> {
    let old = call.request.take().ok_or(Error::NoBuffer)?;
    let made = match Request::decode(old.data()) {
        Ok((_, request)) => {
            let request = make(request.key());
            cx.buf(request.size()).map(|mut message| {
                request.encode(0, message.data_mut());
                message
            })
        }
        Err(_) => unreachable!("this client has encoded it"),
    };
    cx.recycle([old]);
    call.request = Some(made.map_err(|_| Error::NoBuffer)?);
    Ok(())
}
