//! The service: handlers that turn requests of an endpoint into operations on its partition.
//!
//! A batch contains all operations of a receive burst that concern one key each, whatever their
//! kind. The table's memory for all of them is prefetched before the first runs (HERD §4.1.1). If
//! each is a get or a set without a condition, the sets run before the gets: in a mixed order, the
//! processor would mispredict whether a get or a set comes next. Requests of a burst are
//! concurrent, so any order is right. Otherwise, all run in order of arrival. A batch of more than
//! [`BATCH`] operations is several such parts. Each operation is answered immediately, in a buffer
//! that its slot keeps from one answer to the next. If the endpoint has no memory for such a
//! buffer, the operation has run, and a client does not learn the result of its write. No request
//! makes a handler panic. A value longer than a slice is written in parts, between which the
//! endpoint serves other requests. There are exceptions, which copy up to 1 MiB at once: a write
//! that the table does in one piece, see [`Table::write_part`]; a write that the endpoint cannot
//! keep for later, such as an append of few bytes to a long value; and all writes of
//! [`serve_singly`], whose handler cannot interrupt a write.
//!
//! [`Table::write_part`]: dunlin_store::Table::write_part

use dunlin_core::{Batch, BatchItem, Cx, Refuse, Register, Request as RpcRequest};
use dunlin_store::{BATCH, Key, SLICE, Seconds, ones};
use dunlin_wire::ErrorCode;

use crate::partition::{Partition, Reply, WholeReply, copy};
use crate::wire::{
    Figures, KEYED, Keys, MAP, MULTI, Request, Status, Store, WHOLE, Whole, short_len, write_short,
};

/// The state of an endpoint that serves a partition.
pub trait Host {
    /// The partition.
    fn partition(&mut self) -> &mut Partition;
}

impl Host for Partition {
    fn partition(&mut self) -> &mut Partition {
        self
    }
}

/// Registers the service on an endpoint whose state has a partition.
///
/// ```
/// use dunlin_core::Register;
/// use dunlin_kv::{Partition, serve};
///
/// fn set_up(endpoint: &mut impl Register<Partition>) {
///     serve(endpoint);
/// }
/// ```
pub fn serve<App: Host>(endpoint: &mut impl Register<App>) {
    endpoint.register_batch(KEYED, 0, on_keyed::<App>);
    serve_others(endpoint);
}

/// Like [`serve`], but runs each operation separately and prefetches nothing. This is slower, and
/// exists to measure the gain of batches (HERD figure 7).
///
/// ```
/// use dunlin_core::Register;
/// use dunlin_kv::{Partition, serve_singly};
///
/// fn set_up(endpoint: &mut impl Register<Partition>) {
///     serve_singly(endpoint);
/// }
/// ```
pub fn serve_singly<App: Host>(endpoint: &mut impl Register<App>) {
    endpoint.register(KEYED, on_single::<App>);
    serve_others(endpoint);
}

/// Registers the handlers of requests other than operations on one key.
fn serve_others<App: Host>(endpoint: &mut impl Register<App>) {
    endpoint.register(MAP, on_map::<App>);
    endpoint.register(MULTI, on_multi::<App>);
    endpoint.register(WHOLE, on_whole::<App>);
}

fn on_map<App: Host>(app: &mut App, request: RpcRequest<'_>, cx: &mut Cx<'_>) {
    let partition = app.partition();
    let (map, own) = (partition.map(), partition.number());
    request.reply(cx, map.size(), |out| map.encode(own, out));
}

fn on_keyed<App: Host>(app: &mut App, mut batch: Batch<'_>, cx: &mut Cx<'_>) {
    let (partition, now) = (app.partition(), cx.now());
    partition.on_batch(batch.len(), now);
    let time = partition.time(now);
    for first in (0..batch.len()).step_by(BATCH) {
        run_together(partition, (&mut batch, first), time, cx);
    }
}

/// Runs up to [`BATCH`] requests, from one on, whose memory is prefetched together.
#[inline]
fn run_together(
    partition: &mut Partition,
    (batch, first): (&mut Batch<'_>, usize),
    time: Seconds,
    cx: &mut Cx<'_>,
) {
    let requests = &batch.data()[first..];
    let requests = &requests[..requests.len().min(BATCH)];
    let mut keys = [Key::default(); BATCH];
    let keys = &mut keys[..requests.len()];
    // A bit for each request of these kinds.
    let sets = sets_of(requests);
    const { assert!(BATCH == u32::BITS as usize, "a bit for each request") };
    let gets = !sets & u32::MAX >> (BATCH - keys.len()).min(BATCH - 1);
    let (mut others, tag) = (0, partition.tag());
    for number in ones(sets) {
        match Request::decode_set(requests[number], tag) {
            Some(bytes) => keys[number] = partition.key(bytes),
            None => others |= 1 << number,
        }
    }
    for number in ones(gets) {
        match Request::decode_get(requests[number], tag) {
            Some(bytes) => keys[number] = partition.key(bytes),
            None => others |= 1 << number,
        }
    }
    if others != 0 {
        find_keys(partition, requests, others, keys);
    }
    partition.ahead(keys);
    if others != 0 {
        return run_in_order(partition, (batch, first, keys), gets & !others, time, cx);
    }
    for number in ones(sets) {
        if let (Some(item), Some(key)) = (batch.item(first + number), keys.get(number)) {
            run_set(partition, key, item, time, cx);
        }
    }
    for number in ones(gets) {
        if let (Some(item), Some(key)) = (batch.item(first + number), keys.get(number)) {
            run_get(partition, key, item, time, cx);
        }
    }
}

/// A bit for each of these requests that claims to be a set. Nothing here branches on that: in a
/// mix of gets and sets, the processor would mispredict it for every second request.
#[inline]
fn sets_of(requests: &[&[u8]]) -> u32 {
    let mut sets = 0;
    for (number, request) in requests.iter().enumerate() {
        sets |= u32::from(Request::claims_set(request)) << number;
    }
    sets
}

/// Finds the keys of the requests with these numbers, whatever their kind.
#[inline(never)]
fn find_keys<'a>(partition: &Partition, requests: &[&'a [u8]], numbers: u32, keys: &mut [Key<'a>]) {
    for number in ones(numbers) {
        if let Ok(bytes) = Request::find_key(requests[number]) {
            keys[number] = partition.key(bytes);
        }
    }
}

/// Runs requests of all kinds, in order of arrival.
#[inline(never)]
fn run_in_order(
    partition: &mut Partition,
    (batch, first, keys): (&mut Batch<'_>, usize, &[Key<'_>]),
    gets: u32,
    time: Seconds,
    cx: &mut Cx<'_>,
) {
    for (number, key) in keys.iter().enumerate() {
        let Some(item) = batch.item(first + number) else {
            continue;
        };
        match gets >> number & 1 == 0 {
            true => run_other(partition, key, item, time, cx),
            false => run_get(partition, key, item, time, cx),
        }
    }
}

#[inline(always)]
fn run_get(
    partition: &mut Partition,
    key: &Key<'_>,
    item: BatchItem<'_>,
    time: Seconds,
    cx: &mut Cx<'_>,
) {
    match partition.get(key, time) {
        Some((head, value)) => {
            item.reply_now(cx, head.size(), |out| copy(&value, head.write(out)));
        }
        None => answer(item, &Reply::Refused(Status::Missing), cx),
    }
}

#[inline(always)]
fn run_set(
    partition: &mut Partition,
    key: &Key<'_>,
    item: BatchItem<'_>,
    time: Seconds,
    cx: &mut Cx<'_>,
) {
    let store = Store::of_plain_set(item.data(), key.bytes());
    if store.value.len() > SLICE {
        return run_other(partition, key, item, time, cx);
    }
    match partition.set(&store, key, time) {
        Ok(version) => item.reply_now(cx, short_len(1), |out| {
            write_short(Status::Written, &[version], out);
        }),
        Err(status) => answer(item, &Reply::Refused(status), cx),
    }
}

/// Runs a request that is not a get, or a get with another map.
#[inline(never)]
fn run_other(
    partition: &mut Partition,
    key: &Key<'_>,
    item: BatchItem<'_>,
    time: Seconds,
    cx: &mut Cx<'_>,
) {
    match Request::decode(item.data()) {
        Ok((tag, Request::Write(store))) => {
            debug_assert_eq!(key.bytes(), store.key, "`find_key` finds the key");
            run_write(partition, (tag, &store), key, item, time, cx);
        }
        Ok((tag, request)) => {
            debug_assert_eq!(key.bytes(), request.key(), "`find_key` finds the key");
            partition.run((tag, &request), key, time, |reply| answer(item, &reply, cx));
        }
        Err(_) => refuse(partition, item, cx),
    }
}

fn run_write(
    partition: &mut Partition,
    (tag, store): (u32, &Store<'_>),
    key: &Key<'_>,
    item: BatchItem<'_>,
    time: Seconds,
    cx: &mut Cx<'_>,
) {
    if store.value.len() > SLICE || store.verb.joins() {
        return write_part(partition, (tag, store), key, item, time, cx);
    }
    match partition.write((tag, store), key, time) {
        Ok(version) => answer(item, &Reply::Written(version), cx),
        Err(status) => answer(item, &Reply::Refused(status), cx),
    }
}

/// Writes a part of a long value. Unless that was the last part, the handler continues with the
/// request later.
#[cold]
#[inline(never)]
fn write_part(
    partition: &mut Partition,
    (tag, store): (u32, &Store<'_>),
    key: &Key<'_>,
    mut item: BatchItem<'_>,
    time: Seconds,
    cx: &mut Cx<'_>,
) {
    let ticket = item.ticket(cx);
    partition.on_call(ticket);
    loop {
        if let Some(reply) = partition.write_part((tag, store), key, ticket, time) {
            return answer(item, &reply, cx);
        }
        match item.again() {
            Ok(()) => return,
            // The request came in one packet, or too many requests wait for their next part.
            Err(back) => item = back,
        }
    }
}

#[cold]
fn refuse(partition: &mut Partition, item: BatchItem<'_>, cx: &mut Cx<'_>) {
    partition.on_malformed();
    item.refuse(cx, ErrorCode::UNDECODABLE);
}

#[inline(never)]
fn answer(item: BatchItem<'_>, reply: &Reply<'_>, cx: &mut Cx<'_>) {
    item.reply_now(cx, reply.size(), |out| reply.write(out));
}

fn on_single<App: Host>(app: &mut App, request: RpcRequest<'_>, cx: &mut Cx<'_>) {
    let (partition, now) = (app.partition(), cx.now());
    partition.on_batch(1, now);
    let Ok((tag, operation)) = Request::decode(request.data()) else {
        partition.on_malformed();
        return request.refuse(cx, ErrorCode::UNDECODABLE);
    };
    let (key, time) = (partition.key(operation.key()), partition.time(now));
    partition.run((tag, &operation), &key, time, |reply| {
        request.reply(cx, reply.size(), |out| reply.write(out));
    });
}

fn on_multi<App: Host>(app: &mut App, request: RpcRequest<'_>, cx: &mut Cx<'_>) {
    let (partition, now) = (app.partition(), cx.now());
    match Keys::decode(request.data()) {
        Ok((tag, keys)) => {
            let keys = match cx.session_info(request.session()) {
                Ok(session) => keys.within(session.max_message),
                // The session has ended, and with it the need for an answer.
                Err(_) => keys,
            };
            partition.on_batch(keys.len(), now);
            request.reply_bytes(cx, partition.run_multi((tag, &keys), now));
        }
        Err(_) => {
            partition.on_malformed();
            request.refuse(cx, ErrorCode::UNDECODABLE);
        }
    }
}

fn on_whole<App: Host>(app: &mut App, request: RpcRequest<'_>, cx: &mut Cx<'_>) {
    let (partition, now) = (app.partition(), cx.now());
    let Ok(whole) = Whole::decode(request.data()) else {
        partition.on_malformed();
        return request.refuse(cx, ErrorCode::UNDECODABLE);
    };
    match partition.run_whole(whole, now) {
        WholeReply::Figures(figures) => {
            request.reply(cx, Figures::SIZE, |out| figures.encode(out));
        }
        WholeReply::Keys(bytes) => request.reply_bytes(cx, &bytes),
        WholeReply::Short(reply) => request.reply(cx, reply.size(), |out| reply.write(out)),
    }
}

const _: () = assert!(BATCH <= u32::BITS as usize);
