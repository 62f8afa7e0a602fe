//! The service: handlers that turn requests of an endpoint into operations on its partition.
//!
//! A batch has all operations on single keys of a receive burst, of any kind. They run in the order
//! in which they came, and the table's memory for all of them is prefetched before the first runs
//! (HERD §4.1.1). A batch prepares responses of [`INLINE`] bytes; for a longer answer, the endpoint
//! makes room of its length. No handler allocates, panics on any bytes, or copies more than a slice
//! of a value.

use dunlin_core::{Batch, BatchItem, Cx, Refuse, Register, Request as Incoming};
use dunlin_store::{BATCH, Key};
use dunlin_wire::ErrorCode;

use crate::partition::{Partition, Reply, WholeReply};
use crate::wire::{Figures, KEYED, Keys, MAP, MULTI, Request, WHOLE, Whole};

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

/// Like [`serve`], but runs each operation by itself and prefetches nothing. This is slower: it
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

fn on_map<App: Host>(app: &mut App, request: Incoming<'_>, cx: &mut Cx<'_>) {
    let partition = app.partition();
    let (map, own) = (partition.map(), partition.number());
    request.reply(cx, map.size(), |out| map.encode(own, out));
}

fn on_keyed<App: Host>(app: &mut App, mut batch: Batch<'_>, cx: &mut Cx<'_>) {
    let partition = app.partition();
    partition.on_batch(batch.len(), cx.now());
    let mut items = batch.iter_mut();
    loop {
        let mut asked: [Option<BatchItem<'_>>; BATCH] = [const { None }; BATCH];
        let mut keys = [Key::default(); BATCH];
        let mut count = 0;
        for item in items.by_ref() {
            match Request::find_key(item.data()) {
                Ok(key) => {
                    keys[count] = partition.key(key);
                    asked[count] = Some(item);
                    count += 1;
                }
                Err(_) => refuse(partition, item, cx),
            }
            if count == BATCH {
                break;
            }
        }
        run_together(partition, &mut asked[..count], &mut keys[..count], cx);
        if count < BATCH {
            return;
        }
    }
}

/// Runs up to [`BATCH`] requests, whose memory is fetched together. Each is read as a whole only
/// now: what is read is too large to be kept for all of them.
fn run_together(
    partition: &mut Partition,
    asked: &mut [Option<BatchItem<'_>>],
    keys: &mut [Key<'_>],
    cx: &mut Cx<'_>,
) {
    if asked.len() > 1 {
        partition.ahead(keys);
    }
    for (key, item) in keys.iter().zip(asked) {
        let Some(item) = item.take() else { continue };
        match Request::decode(item.data()) {
            Ok((tag, request)) => {
                debug_assert_eq!(key.bytes(), request.key(), "`find_key` finds the key");
                let now = cx.now();
                partition.run((tag, &request), key, now, |reply| answer(item, &reply, cx));
            }
            Err(_) => refuse(partition, item, cx),
        }
    }
}

#[cold]
fn refuse(partition: &mut Partition, item: BatchItem<'_>, cx: &mut Cx<'_>) {
    partition.on_malformed();
    item.refuse(cx, ErrorCode::UNDECODABLE);
}

#[inline]
fn answer(item: BatchItem<'_>, reply: &Reply<'_>, cx: &mut Cx<'_>) {
    let size = reply.size();
    if size <= INLINE {
        // The batch has room for it.
        let _ = item.reply(size, |out| reply.write(out));
    } else {
        item.defer(cx).reply(cx, size, |out| reply.write(out));
    }
}

fn on_single<App: Host>(app: &mut App, request: Incoming<'_>, cx: &mut Cx<'_>) {
    let (partition, now) = (app.partition(), cx.now());
    partition.on_batch(1, now);
    let Ok((tag, operation)) = Request::decode(request.data()) else {
        partition.on_malformed();
        return request.refuse(cx, ErrorCode::UNDECODABLE);
    };
    let key = partition.key(operation.key());
    partition.run((tag, &operation), &key, now, |reply| {
        request.reply(cx, reply.size(), |out| reply.write(out));
    });
}

fn on_multi<App: Host>(app: &mut App, request: Incoming<'_>, cx: &mut Cx<'_>) {
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

fn on_whole<App: Host>(app: &mut App, request: Incoming<'_>, cx: &mut Cx<'_>) {
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
