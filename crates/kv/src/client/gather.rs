//! Gets of many keys: one request to each partition that has some of them, all at the same time.
//! Keys that do not fit into an answer are asked for again; a long value is read separately.

use dunlin_channel::Failures;
use dunlin_core::{Cx, Nanos, Session};
use dunlin_msgbuf::MsgBuf;
use dunlin_store::MAX_KEY;

use super::calls::{Call, Job, Part, Route};
use super::end::{End, Item, Reply};
use super::machine::Client;
use super::multi::Multi;
use super::options::Token;
use crate::error::Error;
use crate::wire::{Answer, Keys, MULTI, Records, Status};

impl Client {
    /// Begins a get of many keys, of any partitions. Its end has the items in the order of the
    /// keys; a repeated key is answered each time.
    ///
    /// # Errors
    /// The operation is not begun: [`Error::BadKey`], or [`Error::MessageTooLong`] for more than
    /// 65 535 keys.
    pub fn begin_multi(
        &mut self,
        keys: &[&[u8]],
        token: Token,
        deadline: Option<Nanos>,
        cx: &mut Cx<'_>,
    ) -> Result<(), Error> {
        self.begin_many((keys, Vec::new()), false, token, deadline, cx)
    }

    /// Like [`Self::begin_multi`], with the hashes that route the keys, if known. With `misses`,
    /// keys of partitions that are down count as missing.
    pub(crate) fn begin_many(
        &mut self,
        (keys, routes): (&[&[u8]], Vec<u64>),
        misses: bool,
        token: Token,
        deadline: Option<Nanos>,
        cx: &mut Cx<'_>,
    ) -> Result<(), Error> {
        let count = u16::try_from(keys.len()).map_err(|_| Error::MessageTooLong)?;
        if keys.iter().any(|key| key.is_empty() || key.len() > MAX_KEY) {
            return Err(Error::BadKey);
        }
        let mut end = 0;
        let ends = keys.iter().map(|key| {
            end += u32::try_from(key.len()).expect("at most MAX_KEY");
            end
        });
        let deadline = self.deadline(deadline, cx);
        let multi = Multi {
            token,
            ends: ends.collect(),
            keys: keys.concat(),
            items: vec![Ok(None); keys.len()],
            routes,
            pending: (0..count).collect(),
            calls: 0,
            most_asked: usize::MAX,
            failed: None,
            deadline,
            misses,
            not_before: Nanos::ZERO,
            failures: Failures::default(),
        };
        self.next_deadline = self.next_deadline.min(deadline);
        let place = self.multis.insert(multi);
        self.group(place, cx);
        self.end_if_over(place);
        Ok(())
    }

    /// Makes calls for the pending keys of all gets.
    pub(super) fn group_all(&mut self, cx: &mut Cx<'_>) {
        for place in self.multis.pending() {
            self.group(place, cx);
            self.end_if_over(place);
        }
    }

    /// Returns the keys of waiting calls to their gets, because the map has changed.
    pub(super) fn regroup(&mut self, cx: &mut Cx<'_>) {
        for _ in 0..self.waiting.len() {
            let Some(place) = self.waiting.pop_front() else {
                break;
            };
            match self.calls.get_mut(place).job {
                Job::Keys(..) => self.dissolve(place, cx),
                _ => self.waiting.push_back(place),
            }
        }
    }

    /// Returns the keys of a call to their get.
    pub(super) fn dissolve(&mut self, place: u32, cx: &mut Cx<'_>) {
        let call = self.calls.remove(place);
        cx.recycle(call.request);
        if let Job::Keys(multi, indices) = call.job {
            self.next_deadline = self.next_deadline.min(call.deadline);
            let get = self.multis.get_mut(multi);
            get.calls -= 1;
            get.not_before = get.not_before.max(call.not_before);
            get.failures = get.failures.max(call.failures);
            if get.failed.is_none() {
                get.pending.extend(indices);
            }
            self.end_if_over(multi);
        }
    }

    /// Handles a request that is too long, or whose response would be too long. Several keys are
    /// asked for again, in requests of at most `most` bytes, and a single key by a get of its own,
    /// which is shorter. Any other request fails.
    pub(super) fn on_too_large(&mut self, place: u32, most: usize, cx: &mut Cx<'_>) {
        match &self.calls.get_mut(place).job {
            Job::Keys(multi, keys) if keys.len() > 1 => {
                self.multis.get_mut(*multi).most_asked = most;
                self.dissolve(place, cx);
                self.is_stirred = true;
            }
            Job::Keys(multi, keys) => {
                let part = Part {
                    multi: *multi,
                    key: keys[0],
                };
                self.ask_alone_instead(place, part, cx);
            }
            _ => self.fail(place, Error::MessageTooLong, cx),
        }
    }

    /// Replaces a call for one key by a separate get.
    fn ask_alone_instead(&mut self, place: u32, part: Part, cx: &mut Cx<'_>) {
        let call = self.calls.remove(place);
        cx.recycle(call.request);
        self.ask_alone(part, cx);
        self.multis.get_mut(part.multi).calls -= 1;
        self.end_if_over(part.multi);
    }

    /// Makes calls for the pending keys of a get. The caller then ends the get if it is complete.
    fn group(&mut self, place: u32, cx: &mut Cx<'_>) {
        // A call may fail at once. While `calls` is one too high, such a failure does not end the
        // get.
        self.multis.get_mut(place).calls += 1;
        self.make_calls(place, cx);
        self.multis.get_mut(place).calls -= 1;
    }

    fn make_calls(&mut self, place: u32, cx: &mut Cx<'_>) {
        let Some(map) = self.map.clone() else {
            return;
        };
        let not_before = self.multis.get_mut(place).not_before;
        if not_before > cx.now() {
            self.retry_at = self.retry_at.min(not_before);
            return;
        }
        while let Some((partition, indices)) = self.multis.get_mut(place).take_group(&map) {
            let limit = self.options.multi_answer;
            let multi = self.multis.get_mut(place);
            let keys = || indices.iter().map(|index| multi.key(*index));
            let Ok(mut request) = cx.buf(Keys::size(keys())) else {
                return multi.fail(Error::NoBuffer);
            };
            Keys::encode(0, limit, indices.len(), keys(), request.data_mut());
            let call = Call {
                route: Route::Partition(partition),
                req_type: MULTI,
                request: Some(request),
                room: limit as usize,
                is_read: true,
                deadline: multi.deadline,
                failures: multi.failures,
                not_before: Nanos::ZERO,
                job: Job::Keys(place, indices),
            };
            multi.calls += 1;
            self.dispatch(call, cx);
        }
    }

    /// Takes the answer to a call for some keys.
    pub(super) fn on_records(
        &mut self,
        place: u32,
        session: Session,
        response: &MsgBuf,
        cx: &mut Cx<'_>,
    ) {
        let records = match Records::decode(response.data()) {
            Ok(Ok(records)) if !records.is_empty() => records,
            Ok(Err(Status::MapChanged)) => {
                self.dissolve(place, cx);
                if self.lanes.on_map_changed(session) {
                    self.greet(session, cx);
                }
                return;
            }
            _ => return self.fail(place, Error::Incompatible, cx),
        };
        let call = self.calls.remove(place);
        cx.recycle(call.request);
        let Job::Keys(multi, indices) = call.job else {
            unreachable!("only calls for keys have records");
        };
        let (answered, rest) = indices.split_at(records.len().min(indices.len()));
        for (index, record) in answered.iter().zip(&records) {
            self.on_record(multi, *index, record, cx);
        }
        let get = self.multis.get_mut(multi);
        get.calls -= 1;
        if get.failed.is_none() {
            get.pending.extend(rest);
        }
        self.group(multi, cx);
        self.end_if_over(multi);
    }

    fn on_record(&mut self, multi: u32, index: u16, record: &Answer<'_>, cx: &mut Cx<'_>) {
        let get = self.multis.get_mut(multi);
        match record {
            Answer::Found(item) => {
                get.items[usize::from(index)] = Ok(Some(Item::of(item)));
            }
            Answer::Refused(Status::Alone) => self.ask_alone(Part { multi, key: index }, cx),
            // Any other status means that there is no item.
            _ => {}
        }
    }

    /// Begins a separate get for one key.
    fn ask_alone(&mut self, part: Part, cx: &mut Cx<'_>) {
        let get = self.multis.get_mut(part.multi);
        get.calls += 1;
        let (key, deadline) = (get.key(part.key).to_vec(), get.deadline);
        if let Err(error) = self.begin_part(&key, part, deadline, cx) {
            let get = self.multis.get_mut(part.multi);
            get.calls -= 1;
            get.fail(error);
        }
    }

    /// Takes the end of a separate get.
    pub(super) fn on_part(&mut self, part: Part, result: Result<Reply, Error>) {
        let get = self.multis.get_mut(part.multi);
        get.calls -= 1;
        match result {
            Ok(Reply::Found(found)) => {
                get.items[usize::from(part.key)] = Ok(Some(found.into_item()));
            }
            Ok(_) => {}
            // The key or its value fits into no message of the server. That concerns no other key.
            Err(error @ Error::MessageTooLong) => get.items[usize::from(part.key)] = Err(error),
            Err(error) => get.fail(error),
        }
        self.end_if_over(part.multi);
    }

    /// Notes that a call for keys has failed.
    pub(super) fn on_keys_failed(&mut self, multi: u32, error: Option<Error>) {
        let get = self.multis.get_mut(multi);
        get.calls -= 1;
        get.fail(error.unwrap_or(Error::Incompatible));
        self.end_if_over(multi);
    }

    /// Notes that a call's keys are left out of a get.
    pub(super) fn on_left_out(&mut self, multi: u32) {
        self.multis.get_mut(multi).calls -= 1;
        self.end_if_over(multi);
    }

    /// Ends gets whose keys have waited until the deadline.
    pub(super) fn end_late_multis(&mut self, now: Nanos) {
        for place in self.multis.pending() {
            let get = self.multis.get_mut(place);
            let deadline = get.deadline;
            match deadline <= now {
                true => get.fail(Error::Unavailable),
                false => self.next_deadline = self.next_deadline.min(deadline),
            }
            self.end_if_over(place);
        }
    }

    /// Ends all gets whose keys wait.
    pub(super) fn end_multis(&mut self, error: Error) {
        for place in self.multis.pending() {
            let get = self.multis.get_mut(place);
            match get.may_miss(error) {
                true => get.pending.clear(),
                false => get.fail(error),
            }
            self.end_if_over(place);
        }
    }

    /// Ends a get if none of its keys is pending and none of its calls is in flight.
    fn end_if_over(&mut self, place: u32) {
        if !self.multis.is_over(place) {
            return;
        }
        let get = self.multis.remove(place);
        let result = match get.failed {
            Some(error) => Err(error),
            None => Ok(Reply::Items(get.items)),
        };
        let token = get.token;
        self.push_end(End { token, result });
    }
}
