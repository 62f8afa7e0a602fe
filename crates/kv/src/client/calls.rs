//! The calls of a client: one for each request, under way or waiting, in a table whose places are
//! used again.

use dunlin_channel::Failures;
use dunlin_core::{Nanos, Tag};
use dunlin_msgbuf::MsgBuf;
use dunlin_wire::ReqType;

use super::options::Token;
use crate::wire::{KEYED, Map, Request};

/// Marks the tags of clients among those of their endpoint: "kv". After it come the number of the
/// client, a generation, and the place of the call.
const MARK: u64 = 0x6b76 << 48;
const CLIENT_SHIFT: u32 = 36;
const GENERATION_SHIFT: u32 = 28;
const GENERATIONS: u64 = (1 << (CLIENT_SHIFT - GENERATION_SHIFT)) - 1;
const PLACES: u64 = (1 << GENERATION_SHIFT) - 1;

/// Most clients of one endpoint.
pub(crate) const MAX_CLIENTS: usize = 1 << (48 - CLIENT_SHIFT);

/// Which program asks, and how the end of a call reaches it.
#[derive(Debug)]
pub(super) enum Job {
    /// The first call over a session.
    Greeting,
    /// The operation of a program; a get, if the flag is set.
    Plain(Token),
    /// A get of a value that is longer than an answer, with the slices so far.
    Long(Owner, Box<Long>),
    /// A get by itself, for a key of a get of many.
    Part(Part),
    /// Some keys of a get of many.
    Keys(u32, Vec<u16>),
}

/// A key of a get of many: the place of the get, and that of the key in it.
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
    /// `None` while the endpoint has it.
    pub(super) request: Option<MsgBuf>,
    /// Bytes of the answer for which there is room.
    pub(super) room: usize,
    pub(super) deadline: Nanos,
    /// Its failed attempts, and when it may be tried again after the last one.
    pub(super) failures: Failures,
    pub(super) not_before: Nanos,
    pub(super) route: Route,
    pub(super) req_type: ReqType,
    /// May run twice.
    pub(super) is_read: bool,
}

impl Call {
    /// The partition that it is for, while the endpoint does not have its request.
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

    /// The operation of the program, if the call is all of it, and has one key.
    #[inline]
    pub(super) fn plain_token(&self) -> Option<Token> {
        match self.job {
            Job::Plain(token) if self.req_type == KEYED => Some(token),
            _ => None,
        }
    }
}

/// The table of calls.
#[derive(Debug)]
pub(super) struct Calls {
    /// The upper bits of the tags of this client's calls.
    mark: u64,
    places: Vec<(u64, Option<Call>)>,
    free: Vec<u32>,
}

/// The number of the client that has a call with this tag; `None`: no client has.
#[inline]
pub(crate) fn client_of(tag: Tag) -> Option<u16> {
    let number = tag.0 >> CLIENT_SHIFT ^ MARK >> CLIENT_SHIFT;
    let number = u16::try_from(number).ok()?;
    (usize::from(number) < MAX_CLIENTS).then_some(number)
}

impl Calls {
    /// The calls of the client with this number, below [`MAX_CLIENTS`].
    pub(super) fn new(client: u16) -> Self {
        debug_assert!(usize::from(client) < MAX_CLIENTS, "an endpoint has fewer");
        Self {
            mark: MARK | u64::from(client) << CLIENT_SHIFT,
            places: Vec::new(),
            free: Vec::new(),
        }
    }

    pub(super) fn live(&self) -> usize {
        self.places.len() - self.free.len()
    }

    #[inline]
    pub(super) fn insert(&mut self, call: Call) -> u32 {
        let place = self.free.pop().unwrap_or_else(|| self.add_place());
        self.places[place as usize].1 = Some(call);
        place
    }

    /// Makes a place that is free.
    #[cold]
    #[inline(never)]
    fn add_place(&mut self) -> u32 {
        self.places.push((0, None));
        u32::try_from(self.places.len() - 1).expect("memory ends before that")
    }

    #[inline]
    pub(super) fn get_mut(&mut self, place: u32) -> &mut Call {
        let call = self.places[place as usize].1.as_mut();
        call.expect("the place belongs to a call")
    }

    #[inline]
    pub(super) fn remove(&mut self, place: u32) -> Call {
        let call = self.places[place as usize].1.take();
        self.give_back(place);
        call.expect("the place belongs to a call")
    }

    /// Ends a call that has neither a request nor anything else to give back.
    #[inline]
    pub(super) fn end_plain(&mut self, place: u32) {
        let call = self.places[place as usize].1.take();
        debug_assert!(
            call.as_ref()
                .is_none_or(|call| { call.plain_token().is_some() && call.request.is_none() })
        );
        // To find out that there is nothing to drop costs a call.
        std::mem::forget(call);
        self.give_back(place);
    }

    /// A later call may have the place.
    #[inline]
    fn give_back(&mut self, place: u32) {
        let (generation, _) = &mut self.places[place as usize];
        *generation = (*generation + 1) & GENERATIONS;
        self.free.push(place);
    }

    /// The tag by which the endpoint names a call.
    #[inline]
    pub(super) fn tag(&self, place: u32) -> Tag {
        let (generation, _) = self.places[place as usize];
        Tag(self.mark | generation << GENERATION_SHIFT | u64::from(place))
    }

    /// The call with this tag.
    #[inline]
    pub(super) fn find(&self, tag: Tag) -> Option<u32> {
        let place = u32::try_from(tag.0 & PLACES).expect("it was masked");
        let (_, call) = self.places.get(place as usize)?;
        (call.is_some() && tag == self.tag(place)).then_some(place)
    }
}
