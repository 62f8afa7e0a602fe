//! The handlers. A batch has all operations on single keys of a receive burst. They run in the
//! dispatch thread, in order of arrival. Scans run in workers, which share the tree, so that a long
//! scan delays no get (eRPC §3.2, §7.2).

use dunlin_core::{
    BackgroundRequest, Batch, BatchItem, Clock, Cx, Endpoint, Refuse, Register as Dispatch,
    Request as RpcRequest, transport::Transport,
};
use dunlin_wire::{ErrorCode, ReqType};
use scc::Guard;

use crate::index::Index;
use crate::wire::{Answer, KEYED, Page, Request, SCAN, SCAN_ROOM, Scan, ScanAnswer, What};

/// The longest answer for which a batch prepares the buffers of its responses.
const INLINE: usize = 256;

/// The state of an endpoint that serves an index.
pub trait Host {
    /// The index.
    fn index(&self) -> &Index;
}

impl Host for Index {
    fn index(&self) -> &Index {
        self
    }
}

/// An endpoint that runs handlers in its own thread and in workers.
pub trait Register<App>: Dispatch<App> {
    /// Registers a handler for workers, whose answers have at most `max_response` bytes.
    fn register_background(
        &mut self,
        req_type: ReqType,
        max_response: usize,
        run: impl Fn(BackgroundRequest<'_>) + Send + Sync + 'static,
    );
}

impl<T: Transport, C: Clock, App> Register<App> for Endpoint<T, C, App> {
    fn register_background(
        &mut self,
        req_type: ReqType,
        max_response: usize,
        run: impl Fn(BackgroundRequest<'_>) + Send + Sync + 'static,
    ) {
        self.on_background(req_type, max_response, run);
    }
}

#[cfg(feature = "nexus")]
impl<T: dunlin_nexus::Open, App> Register<App> for dunlin_nexus::Rpc<T, App> {
    fn register_background(
        &mut self,
        req_type: ReqType,
        max_response: usize,
        run: impl Fn(BackgroundRequest<'_>) + Send + Sync + 'static,
    ) {
        self.on_background(req_type, max_response, run);
    }
}

/// Registers the service on an endpoint whose state has the index `index`. Its nexus must have
/// workers.
///
/// ```
/// use dunlin_index::{Index, Register, serve};
///
/// fn set_up(endpoint: &mut impl Register<Index>, index: &Index) {
///     serve(endpoint, index);
/// }
/// ```
pub fn serve<App: Host>(endpoint: &mut impl Register<App>, index: &Index) {
    endpoint.register_batch(KEYED, INLINE, on_keyed::<App>);
    let index = index.clone();
    endpoint.register_background(SCAN, SCAN_ROOM, move |request| {
        match Scan::decode(request.data()) {
            Ok(scan) => {
                let answer = answer_scan(&index, &scan);
                // An answer has at most the registered length.
                let _ = request.reply(answer.len(), |_, out| out.copy_from_slice(&answer));
            }
            Err(_) => request.reject(ErrorCode::UNDECODABLE),
        }
    });
}

/// Like [`serve`], but scans run in the dispatch thread, where gets wait for them. It exists to
/// measure the gain of workers (eRPC §7.2), and for servers whose scans are all short.
///
/// ```
/// use dunlin_index::{Index, Register, serve_in_dispatch};
///
/// fn set_up(endpoint: &mut impl Register<Index>) {
///     serve_in_dispatch(endpoint);
/// }
/// ```
pub fn serve_in_dispatch<App: Host>(endpoint: &mut impl Dispatch<App>) {
    endpoint.register_batch(KEYED, INLINE, on_keyed::<App>);
    endpoint.register(SCAN, on_scan::<App>);
}

fn on_keyed<App: Host>(app: &mut App, mut batch: Batch<'_>, cx: &mut Cx<'_>) {
    let (index, guard) = (app.index(), Guard::new());
    for item in batch.iter_mut() {
        match Request::decode(item.data()) {
            Ok(request) => run(index, &guard, &request, item, cx),
            Err(_) => item.refuse(cx, ErrorCode::UNDECODABLE),
        }
    }
}

#[inline]
fn run(index: &Index, guard: &Guard, request: &Request<'_>, item: BatchItem<'_>, cx: &mut Cx<'_>) {
    if let Err(status) = request.check() {
        return reply(&Answer::Refused(status), item, cx);
    }
    let answer = match request {
        Request::Get { key } => {
            let mut item = Some(item);
            let found = index.get_under(guard, key, |value| {
                if let Some(item) = item.take() {
                    reply(&Answer::Found(value), item, cx);
                }
            });
            match (found, item) {
                (None, Some(item)) => return reply(&Answer::Missing, item, cx),
                _ => return,
            }
        }
        Request::Put { key, value } => {
            index.put(key, value);
            Answer::Written
        }
        Request::Delete { key } if index.delete(key) => Answer::Written,
        Request::Delete { .. } => Answer::Missing,
    };
    reply(&answer, item, cx);
}

#[inline]
fn reply(answer: &Answer<'_>, item: BatchItem<'_>, cx: &mut Cx<'_>) {
    let size = answer.size();
    if size <= INLINE {
        // The batch has room for the answer.
        let _ = item.reply(size, |out| answer.encode(out));
    } else {
        item.defer(cx).reply(cx, size, |out| answer.encode(out));
    }
}

fn on_scan<App: Host>(app: &mut App, request: RpcRequest<'_>, cx: &mut Cx<'_>) {
    match Scan::decode(request.data()) {
        Ok(scan) => request.reply_bytes(cx, &answer_scan(app.index(), &scan)),
        Err(_) => request.refuse(cx, ErrorCode::UNDECODABLE),
    }
}

fn answer_scan(index: &Index, scan: &Scan<'_>) -> Vec<u8> {
    if let Err(status) = scan.check() {
        return vec![status.number()];
    }
    match scan.what {
        What::Items(direction) => {
            let mut page = Page::new(scan.limit);
            index.scan(scan.range, direction, |key, value| page.add(key, value));
            page.end()
        }
        What::Total => {
            let total = index.total(scan.range, scan.limit.into());
            ScanAnswer::encode_total(total).to_vec()
        }
    }
}
