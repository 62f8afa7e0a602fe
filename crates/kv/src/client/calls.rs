//! The calls of a client, one for each request in flight or waiting, in a table whose places are
//! reused.
//!
//! Most calls are plain: operations on one key that end with their first answer. The table keeps
//! only two words for each of them, because everything else is in the request, which the endpoint
//! gives back. A plain call that must wait, or needs a second attempt, becomes a [`Call`].

use dunlin_channel::Failures;
use dunlin_core::{Nanos, Tag};
use dunlin_msgbuf::MsgBuf;
use dunlin_wire::ReqType;

use super::options::Token;
use crate::wire::{Map, Request};

/// Marks the tags of clients among those of their endpoint: "kv". After it come the number of the
/// client, the kind of the call, and its place. A place is free only after the end of its call, so
/// no two calls in flight have the same tag.
const MARK: u64 = 0x6b76 << 48;
const CLIENT_SHIFT: u32 = 36;

/// The kinds of calls.
const PLAIN: u64 = 1 << 32;
const OTHER: u64 = 1 << 33;

/// The tag of a free place. No call has it, because no table has such a high place.
const FREE: u64 = u64::MAX;

/// The most clients of one endpoint.
pub(crate) const MAX_CLIENTS: usize = 1 << (48 - CLIENT_SHIFT);

/// The purpose of a call, which determines what happens at its end.
#[derive(Debug)]
pub(super) enum Job {
    /// The first call over a session.
    Greeting,
    /// An operation of a program.
    Plain(Token),
    /// A get of a value that is longer than an answer, with the slices received so far.
    Long(Owner, Box<Long>),
    /// A separate get for one key of a get of many.
    Part(Part),
    /// Some keys of a get of many.
    Keys(u32, Vec<u16>),
}

/// A key of a get of many: the place of the get, and the index of the key in it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub(super) multi: u32,
    pub(super) key: u16,
}

/// The receiver of a get's end.
#[derive(Clone, Copy, Debug)]
pub(super) enum Owner {
    Program(Token),
    Part(Part),
}

/// A long value that is being read.
#[derive(Debug)]
pub(super) struct Long {
    pub(super) flags: u32,
    pub(super) version: u64,
    pub(super) lifetime: u32,
    pub(super) stamp: u64,
    pub(super) len: usize,
    pub(super) value: Vec<u8>,
}

/// The destination of a call.
#[derive(Clone, Copy, Debug)]
pub(super) enum Route {
    /// To the partition of the key in its request.
    Key,
    /// To a partition of the current map.
    Partition(u16),
}

#[derive(Debug)]
pub(super) struct Call {
    pub(super) job: Job,
    /// `None` while the endpoint has the request.
    pub(super) request: Option<MsgBuf>,
    /// Bytes of room for the answer.
    pub(super) room: usize,
    pub(super) deadline: Nanos,
    /// The failed attempts, and when the call may be tried again.
    pub(super) failures: Failures,
    pub(super) not_before: Nanos,
    pub(super) route: Route,
    pub(super) req_type: ReqType,
    /// Whether the call may run twice.
    pub(super) is_read: bool,
}

impl Call {
    /// The partition to which the call goes. Called only while the endpoint does not have the
    /// request.
    pub(super) fn partition(&self, map: &Map) -> u16 {
        match self.route {
            Route::Partition(partition) => partition,
            Route::Key => {
                let request = self.request.as_ref().map_or(&[][..], MsgBuf::data);
                let key = Request::find_key(request).expect("this client has encoded it");
                map.partition_with(key)
            }
        }
    }
}

/// The table of calls.
#[derive(Debug)]
pub(super) struct Calls {
    places: Vec<CallPlace>,
    /// The calls that are not plain, at the same places.
    others: Vec<Option<Call>>,
    free: Vec<u32>,
    /// The upper bits of the tags of this client's calls.
    mark: u64,
}

/// A place of the table.
#[derive(Debug)]
struct CallPlace {
    /// The tag of the call at the endpoint.
    tag: u64,
    /// The operation of a plain call, and its deadline.
    token: Token,
    deadline: Nanos,
    /// The buffer of the last request, kept for the next one: reusing it is faster than the
    /// endpoint's pool.
    spare: Option<MsgBuf>,
}

/// The longest request whose buffer a place keeps.
const SPARE: usize = 512;

/// The number of the client to which a call with this tag belongs; `None` if it is not a client's
/// call.
#[inline]
pub(crate) fn client_of(tag: Tag) -> Option<u16> {
    let number = tag.0 >> CLIENT_SHIFT ^ MARK >> CLIENT_SHIFT;
    let number = u16::try_from(number).ok()?;
    (usize::from(number) < MAX_CLIENTS).then_some(number)
}

impl Calls {
    /// Makes the table of the client with this number, which is below [`MAX_CLIENTS`].
    pub(super) fn new(client: u16) -> Self {
        debug_assert!(usize::from(client) < MAX_CLIENTS, "an endpoint has fewer");
        Self {
            places: Vec::new(),
            others: Vec::new(),
            free: Vec::new(),
            mark: MARK | u64::from(client) << CLIENT_SHIFT,
        }
    }

    pub(super) fn live(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// The call with this tag.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the lower half")]
    pub(super) fn find(&self, tag: Tag) -> Option<u32> {
        let number = tag.0 as u32;
        let place = self.places.get(number as usize)?;
        (place.tag == tag.0).then_some(number)
    }

    /// The tag by which the endpoint names a call.
    pub(super) fn tag(&self, place: u32) -> Tag {
        Tag(self.places[place as usize].tag)
    }

    // Plain calls.

    /// Begins a plain call for an operation of the program, which leaves now. Returns its place and
    /// tag. If the place has a buffer, the caller puts the request into it.
    #[inline]
    pub(super) fn begin_plain(
        &mut self,
        token: Token,
        deadline: Nanos,
    ) -> (u32, Tag, Option<MsgBuf>) {
        let number = self.take_place();
        let place = &mut self.places[number as usize];
        place.tag = self.mark | PLAIN | u64::from(number);
        place.token = token;
        place.deadline = deadline;
        (number, Tag(place.tag), place.spare.take())
    }

    /// The operation of a call, if the call is plain.
    #[inline]
    pub(super) fn plain_token(&self, number: u32) -> Option<Token> {
        let place = &self.places[number as usize];
        (place.tag & PLAIN != 0).then_some(place.token)
    }

    /// Ends a plain call, and keeps the buffer of its request, or returns it.
    #[inline]
    pub(super) fn end_plain(&mut self, number: u32, request: MsgBuf) -> Option<MsgBuf> {
        let place = &mut self.places[number as usize];
        let too_long = if request.capacity() <= SPARE {
            let before = place.spare.replace(request);
            debug_assert!(before.is_none(), "a call takes the buffer of its place");
            // `forget`, because checking that there is nothing to drop would cost a call.
            std::mem::forget(before);
            None
        } else {
            Some(request)
        };
        self.give_back(number);
        too_long
    }

    // Other calls.

    pub(super) fn insert(&mut self, call: Call) -> u32 {
        let number = self.take_place();
        self.put(number, call);
        number
    }

    /// Takes the request of a call back from the endpoint. If the call was plain, `keyed` makes a
    /// full call of it.
    pub(super) fn take_back(
        &mut self,
        number: u32,
        request: MsgBuf,
        keyed: impl FnOnce(Job, MsgBuf, Nanos) -> Call,
    ) {
        match self.plain_token(number) {
            Some(token) => {
                let deadline = self.places[number as usize].deadline;
                self.put(number, keyed(Job::Plain(token), request, deadline));
            }
            None => self.get_mut(number).request = Some(request),
        }
    }

    pub(super) fn get_mut(&mut self, number: u32) -> &mut Call {
        let call = self.others[number as usize].as_mut();
        call.expect("the place belongs to a call that is not plain")
    }

    pub(super) fn remove(&mut self, number: u32) -> Call {
        let call = self.others[number as usize].take();
        self.give_back(number);
        call.expect("the place belongs to a call that is not plain")
    }

    fn put(&mut self, number: u32, call: Call) {
        self.places[number as usize].tag = self.mark | OTHER | u64::from(number);
        self.others[number as usize] = Some(call);
    }

    // Places.

    #[inline]
    fn take_place(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| self.add_place())
    }

    /// Adds a free place.
    #[cold]
    #[inline(never)]
    fn add_place(&mut self) -> u32 {
        let number = u32::try_from(self.places.len()).expect("memory ends before that");
        self.places.push(CallPlace {
            tag: FREE,
            token: Token::default(),
            deadline: Nanos::ZERO,
            spare: None,
        });
        self.others.push(None);
        number
    }

    /// Frees a place for a later call.
    #[inline]
    pub(super) fn give_back(&mut self, number: u32) {
        self.places[number as usize].tag = FREE;
        self.free.push(number);
    }
}

#[cfg(test)]
mod tests;
