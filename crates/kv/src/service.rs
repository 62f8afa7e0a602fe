//! The service: handlers that turn requests of an endpoint into operations on its partition.
//!
//! A batch contains all operations of a receive burst that concern one key each, whatever their
//! kind. They run in order of arrival, and the table's memory for all of them is prefetched before
//! the first runs (HERD §4.1.1). A batch prepares responses of [`INLINE`] bytes; for a longer
//! answer, the endpoint allocates a buffer of its length. Only requests for a whole partition
//! allocate memory in their handler, and no request makes a handler panic. A value longer than a
//! slice is written in parts, between which the endpoint serves other requests. There are
//! exceptions, which copy up to 1 MiB at once: an append or prepend, which joins two values; a
//! write that the table does in one piece, see [`Table::write_part`]; a write that the endpoint
//! cannot keep for later; and all writes of [`serve_singly`], whose handler cannot interrupt a
//! write.
//!
//! [`Table::write_part`]: dunlin_store::Table::write_part

use dunlin_core::{Batch, BatchItem, Cx, Refuse, Register, Request as RpcRequest};
use dunlin_store::{BATCH, Key, SLICE, Seconds};
use dunlin_wire::ErrorCode;

use crate::partition::{Partition, Reply, WholeReply, copy};
use crate::wire::{
    Figures, KEYED, Keys, MAP, MULTI, Request, Status, Store, WHOLE, Whole, short_len, write_short,
};

/// The longest answer for which a batch prepares the buffers of its responses.
pub const INLINE: usize = 1024;

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
    endpoint.register_batch(KEYED, INLINE, on_keyed::<App>);
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
    let requests = batch.data();
    let mut items = batch.iter_mut();
    for requests in requests.chunks(BATCH) {
        run_together(partition, (requests, &mut items), time, cx);
    }
}

/// Runs up to [`BATCH`] requests, whose memory is prefetched together. Gets are decoded
/// immediately. The decoded form of other requests is too large to keep for a whole batch, so only
/// their keys are read first; the whole request is decoded when it runs.
#[inline]
fn run_together<'a>(
    partition: &mut Partition,
    (requests, items): (&[&[u8]], &mut impl Iterator<Item = BatchItem<'a>>),
    time: Seconds,
    cx: &mut Cx<'_>,
) {
    let mut keys = [Key::default(); BATCH];
    // A bit for each request that is a get.
    let mut gets = 0_u32;
    for (number, (key, request)) in keys.iter_mut().zip(requests).enumerate() {
        if let Some(bytes) = partition.key_of_get(request) {
            gets |= 1 << number;
            *key = partition.key(bytes);
        } else if let Ok(bytes) = Request::find_key(request) {
            *key = partition.key(bytes);
        }
    }
    let keys = &mut keys[..requests.len()];
    partition.ahead(keys);
    for (number, (key, item)) in keys.iter().zip(items).enumerate() {
        if gets >> number & 1 == 0 {
            run_other(partition, key, item, time, cx);
            continue;
        }
        match partition.get(key, time) {
            Some((head, value)) if head.size() <= INLINE => {
                // The batch has room for the answer.
                let _ = item.reply(head.size(), |out| copy(&value, head.write(out)));
            }
            Some((head, value)) => answer(item, &Reply::Found(head, value), cx),
            None => answer(item, &Reply::Refused(Status::Missing), cx),
        }
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
    if let Ok((tag, store)) = Store::decode(item.data()) {
        debug_assert_eq!(key.bytes(), store.key, "`find_key` finds the key");
        return run_write(partition, (tag, &store), key, item, time, cx);
    }
    match Request::decode(item.data()) {
        Ok((tag, request)) => {
            debug_assert_eq!(key.bytes(), request.key(), "`find_key` finds the key");
            partition.run((tag, &request), key, time, |reply| answer(item, &reply, cx));
        }
        Err(_) => refuse(partition, item, cx),
    }
}

#[inline]
fn run_write(
    partition: &mut Partition,
    (tag, store): (u32, &Store<'_>),
    key: &Key<'_>,
    item: BatchItem<'_>,
    time: Seconds,
    cx: &mut Cx<'_>,
) {
    if store.value.len() > SLICE {
        return write_part(partition, (tag, store), key, item, time, cx);
    }
    match partition.write((tag, store), key, time) {
        Ok(version) => {
            // The batch has room for the answer.
            let _ = item.reply(short_len(1), |out| {
                write_short(Status::Written, &[version], out);
            });
        }
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

fn answer(item: BatchItem<'_>, reply: &Reply<'_>, cx: &mut Cx<'_>) {
    let size = reply.size();
    if size <= INLINE {
        // The batch has room for the answer.
        let _ = item.reply(size, |out| reply.write(out));
    } else {
        item.defer(cx).reply(cx, size, |out| reply.write(out));
    }
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
