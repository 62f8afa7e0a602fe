//! Beginning operations: each becomes a call with an encoded request, which goes at once or waits.

use dunlin_channel::Failures;
use dunlin_core::{CallOptions, Cx, Nanos};
use dunlin_msgbuf::MsgBuf;
use dunlin_store::{HOT_KEYS, MAX_KEY};

use super::calls::{Call, Job, Part, Route};
use super::machine::Client;
use super::options::{Options, Token};
use crate::error::Error;
use crate::wire::{Figures, KEYED, Request, SCAN_ROOM, WHOLE, Whole};

/// Enough bytes for any answer with hot keys.
const HOT_ROOM: usize = 16 + 2 * HOT_KEYS * (9 + MAX_KEY);

/// Bytes before the value in an answer without a stamp.
const HEAD: usize = 24;

impl Options {
    /// The call for an operation on one key.
    pub(super) fn keyed(&self, job: Job, message: MsgBuf, deadline: Nanos) -> Call {
        let (_, request) = Request::decode(message.data()).expect("this client has encoded it");
        Call {
            job,
            room: self.room_for(request.is_get()),
            is_read: request.is_read(),
            request: Some(message),
            deadline,
            failures: Failures::default(),
            not_before: Nanos::ZERO,
            route: Route::Key,
            req_type: KEYED,
        }
    }

    /// Bytes of room for the answer to an operation on one key.
    #[inline]
    fn room_for(&self, is_get: bool) -> usize {
        match is_get {
            true => HEAD + self.expected_value as usize,
            false => HEAD,
        }
    }
}

impl Client {
    /// Begins an operation on one key. Without a `deadline`, the deadline of the
    /// client's options applies. The operation's end comes from [`Self::next_end`].
    ///
    /// # Errors
    /// The operation is not begun: [`Error::BadKey`], [`Error::TooLong`] or [`Error::NoBuffer`].
    #[inline]
    pub fn begin(
        &mut self,
        request: &Request<'_>,
        token: Token,
        deadline: Option<Nanos>,
        cx: &mut Cx<'_>,
    ) -> Result<(), Error> {
        check(request)?;
        let deadline = self.deadline(deadline, cx);
        self.begin_keyed((request, None), token, deadline, cx)
    }

    /// Like [`Self::begin`], with the hash that routes the key.
    #[inline]
    pub(crate) fn begin_routed(
        &mut self,
        (request, hash): (&Request<'_>, u64),
        token: Token,
        deadline: Option<Nanos>,
        cx: &mut Cx<'_>,
    ) -> Result<(), Error> {
        check(request)?;
        let deadline = self.deadline(deadline, cx);
        self.begin_keyed((request, Some(hash)), token, deadline, cx)
    }

    /// Begins a request for a whole partition.
    ///
    /// # Errors
    /// The operation is not begun: [`Error::NoBuffer`].
    pub fn begin_whole(
        &mut self,
        partition: u16,
        whole: Whole,
        token: Token,
        deadline: Option<Nanos>,
        cx: &mut Cx<'_>,
    ) -> Result<(), Error> {
        let mut request = cx.buf(whole.size()).map_err(|_| Error::NoBuffer)?;
        whole.encode(0, request.data_mut());
        let call = Call {
            job: Job::Plain(token),
            route: Route::Partition(partition),
            req_type: WHOLE,
            request: Some(request),
            room: room_for(whole),
            is_read: whole.is_read(),
            deadline: self.deadline(deadline, cx),
            failures: Failures::default(),
            not_before: Nanos::ZERO,
        };
        self.dispatch(call, cx);
        Ok(())
    }

    /// Begins a separate get for one key of a get of many.
    pub(super) fn begin_part(
        &mut self,
        key: &[u8],
        part: Part,
        deadline: Nanos,
        cx: &mut Cx<'_>,
    ) -> Result<(), Error> {
        self.begin_other(&Request::Get { key }, Job::Part(part), deadline, cx)
    }

    #[inline]
    fn begin_keyed(
        &mut self,
        (request, hash): (&Request<'_>, Option<u64>),
        token: Token,
        deadline: Nanos,
        cx: &mut Cx<'_>,
    ) -> Result<(), Error> {
        // Each kind is compiled separately, so that it does not check its kind several times.
        match *request {
            Request::Get { key } => {
                self.begin_one((&Request::Get { key }, hash), token, deadline, cx)
            }
            Request::Write(store) => {
                self.begin_one((&Request::Write(store), hash), token, deadline, cx)
            }
            _ => self.begin_rare((request, hash), token, deadline, cx),
        }
    }

    #[inline(never)]
    fn begin_rare(
        &mut self,
        request: (&Request<'_>, Option<u64>),
        token: Token,
        deadline: Nanos,
        cx: &mut Cx<'_>,
    ) -> Result<(), Error> {
        self.begin_one(request, token, deadline, cx)
    }

    #[inline(always)]
    fn begin_one(
        &mut self,
        (request, hash): (&Request<'_>, Option<u64>),
        token: Token,
        deadline: Nanos,
        cx: &mut Cx<'_>,
    ) -> Result<(), Error> {
        let way = self.lanes.way_of_key(request.key(), hash);
        let Some(way) = way.filter(|_| deadline > cx.now()) else {
            return self.have_wait(request, token, deadline, cx);
        };
        let (place, tag, spare) = self.calls.begin_plain(token, deadline);
        let Some(mut message) = sized(spare, request.size(), cx) else {
            self.calls.give_back(place);
            return Err(Error::NoBuffer);
        };
        request.encode(way.tag, message.data_mut());
        let Ok(response) = cx.buf(self.options.room_for(request.is_get())) else {
            cx.recycle(self.calls.end_plain(place, message));
            return Err(Error::NoBuffer);
        };
        self.repeats.on_request();
        let options = CallOptions {
            deadline: Some(deadline.since(cx.now())),
        };
        match cx.call_with(way.session, KEYED, message, response, tag, options) {
            Ok(_) => {}
            Err(refused) => {
                let issued = self.on_refused_call(place, refused, cx);
                self.conclude(place, issued, cx);
            }
        }
        Ok(())
    }

    /// Makes an operation wait for a session, or ends it because its deadline has passed. Keeping
    /// this rare case in a call of its own saves the common path two loads.
    #[cold]
    #[inline(never)]
    fn have_wait(
        &mut self,
        request: &Request<'_>,
        token: Token,
        deadline: Nanos,
        cx: &mut Cx<'_>,
    ) -> Result<(), Error> {
        self.begin_other(request, Job::Plain(token), deadline, cx)
    }

    /// Begins an operation on one key whose call is not plain.
    fn begin_other(
        &mut self,
        request: &Request<'_>,
        job: Job,
        deadline: Nanos,
        cx: &mut Cx<'_>,
    ) -> Result<(), Error> {
        let mut message = cx.buf(request.size()).map_err(|_| Error::NoBuffer)?;
        request.encode(0, message.data_mut());
        let call = self.options.keyed(job, message, deadline);
        self.dispatch(call, cx);
        Ok(())
    }

    /// The deadline of an operation.
    pub(super) fn deadline(&self, wanted: Option<Nanos>, cx: &Cx<'_>) -> Nanos {
        wanted.unwrap_or_else(|| cx.now() + self.options.deadline)
    }
}

/// A buffer of this length: the spare one, or a new one if that is too short.
#[inline(always)]
fn sized(spare: Option<MsgBuf>, len: usize, cx: &mut Cx<'_>) -> Option<MsgBuf> {
    match spare {
        Some(mut spare) if spare.capacity() >= len => {
            let resized = spare.resize(len);
            debug_assert!(resized.is_ok());
            Some(spare)
        }
        _ => cx.buf(len).ok(),
    }
}

/// Bytes of room for the answer to a request for a whole partition.
pub(crate) const fn room_for(whole: Whole) -> usize {
    match whole {
        Whole::Scan(_) => SCAN_ROOM,
        Whole::Hot => HOT_ROOM,
        Whole::Figures | Whole::Flush(_) => 2 * Figures::SIZE,
    }
}

/// Checks the lengths of key and value.
pub(crate) fn check(request: &Request<'_>) -> Result<(), Error> {
    match request.is_in_range() {
        true => Ok(()),
        false if request.key().is_empty() || request.key().len() > dunlin_store::MAX_KEY => {
            Err(Error::BadKey)
        }
        false => Err(Error::TooLong),
    }
}
