//! Beginning operations: each becomes a call with an encoded request, which goes at once or waits.

use dunlin_channel::Failures;
use dunlin_core::{Cx, Nanos};
use dunlin_store::{HOT_KEYS, MAX_KEY};

use super::calls::{Call, Job, Owner, Part, Route};
use super::machine::Client;
use super::options::Token;
use crate::error::Error;
use crate::wire::{Figures, KEYED, Request, SCAN_ROOM, WHOLE, Whole};

/// More than the bytes of an answer with hot keys.
const HOT_ROOM: usize = 16 + 2 * HOT_KEYS * (9 + MAX_KEY);

/// Bytes of an answer before the value, for a value without a stamp.
const HEAD: usize = 24;

impl Client {
    /// Begins an operation on one key, with a deadline or the client's own. Its end comes from
    /// [`Self::next_end`].
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
        self.begin_keyed((request, None), Owner::Program(token), deadline, cx)
    }

    /// As [`Self::begin`], with the hash that routes the key.
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
        self.begin_keyed((request, Some(hash)), Owner::Program(token), deadline, cx)
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

    /// Begins a get for a key of a get of many.
    pub(super) fn begin_part(
        &mut self,
        key: &[u8],
        part: Part,
        deadline: Nanos,
        cx: &mut Cx<'_>,
    ) -> Result<(), Error> {
        let request = Request::Get { key };
        self.begin_keyed((&request, None), Owner::Part(part), deadline, cx)
    }

    #[inline]
    fn begin_keyed(
        &mut self,
        (request, hash): (&Request<'_>, Option<u64>),
        owner: Owner,
        deadline: Nanos,
        cx: &mut Cx<'_>,
    ) -> Result<(), Error> {
        let mut message = cx.buf(request.size()).map_err(|_| Error::NoBuffer)?;
        let way = self.way_of_key(request.key(), hash);
        request.encode(way.map_or(0, |(_, tag)| tag), message.data_mut());
        let expected = match request {
            Request::Get { .. } => self.options.expected_value as usize,
            _ => 0,
        };
        let place = self.calls.insert(Call {
            job: match owner {
                Owner::Program(token) => Job::Plain(token),
                Owner::Part(part) => Job::Part(part),
            },
            request: None,
            room: HEAD + expected,
            deadline,
            failures: Failures::default(),
            not_before: Nanos::ZERO,
            route: Route::Key,
            req_type: KEYED,
            is_read: request.is_read(),
        });
        self.repeats.on_request();
        match way {
            Some((session, _)) if deadline > cx.now() => {
                let issued = self.issue_on(session, place, message, cx);
                self.conclude(place, issued, cx);
            }
            _ => {
                self.calls.get_mut(place).request = Some(message);
                self.try_place(place, cx);
            }
        }
        Ok(())
    }

    /// The time at which an operation ends at the latest.
    pub(super) fn deadline(&self, wanted: Option<Nanos>, cx: &Cx<'_>) -> Nanos {
        wanted.unwrap_or_else(|| cx.now() + self.options.deadline)
    }
}

/// Bytes for which the answer to a request for a whole partition needs room.
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
