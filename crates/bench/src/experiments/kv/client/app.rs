//! The state of the endpoint that calls: the service's client, echoes, and the flow of operations.

use dunlin::kv::{Client, End, Error, Item, Reply, Request, Store, Token};
use dunlin::{Cx, Done, MsgBuf, Session, Tag};

use super::super::server::ECHOES;
use super::beside::Beside;
use super::flow::{Flow, MOST};
use super::{Step, What, kv_client};
use crate::harness::items::{self, Items, KEY, Mix, Operation};
use crate::harness::work;

/// Bytes of a request of the service without its key and value, for a get and for a set; and bytes
/// of an answer without its value (protocol, `docs/kv.md`).
const REQUEST: [usize; 2] = [8, 24];
const ANSWER: [usize; 2] = [24, 16];

/// Bits of an echo's tag that name its slot. The others count the echoes.
const SLOT_BITS: u32 = MOST.trailing_zeros();

/// The state of the endpoint.
pub(super) struct App {
    kv: Client,
    echo: Echo,
    flow: Flow,
    beside: Beside,
    what: What,
    /// Room for a value to set.
    value: Vec<u8>,
    keys: Vec<[u8; KEY]>,
}

/// Echoes: their session, and buffers that are not in use.
struct Echo {
    session: Option<Session>,
    counter: u64,
    /// Bytes of request and answer, for gets and for sets.
    lens: [[usize; 2]; 2],
    free: [Vec<[MsgBuf; 2]>; 2],
}

impl App {
    /// The state without a session.
    pub(super) fn new(items: Items, mix: Mix) -> anyhow::Result<Self> {
        let get = [REQUEST[0] + KEY, ANSWER[0] + items.value];
        let set = [REQUEST[1] + KEY + items.value, ANSWER[1]];
        Ok(Self {
            kv: kv_client(items)?,
            echo: Echo {
                session: None,
                counter: 0,
                lens: [get, set],
                free: [Vec::new(), Vec::new()],
            },
            flow: Flow::new(items, mix),
            beside: Beside::new(items),
            what: What::Kv,
            value: vec![0; items.value],
            keys: Vec::new(),
        })
    }

    /// The client of the service.
    pub(super) fn kv(&mut self) -> &mut Client {
        &mut self.kv
    }

    /// The operations of the step.
    pub(super) fn flow(&mut self) -> &mut Flow {
        &mut self.flow
    }

    /// Uses this session for echoes.
    pub(super) fn use_session(&mut self, session: Session) {
        self.echo.session = Some(session);
    }

    /// Begins a step.
    ///
    /// # Errors
    /// Its pace depends on a rate that is unknown.
    pub(super) fn begin(&mut self, step: &Step, largest: f64) -> anyhow::Result<()> {
        self.what = step.what;
        self.beside.switch(step.beside);
        self.flow.begin(step, largest)
    }

    /// Begins no more operations.
    pub(super) fn stop(&mut self) {
        self.beside.switch(false);
        self.flow.stop();
    }

    /// True if nothing is in flight.
    pub(super) fn is_idle(&mut self) -> bool {
        self.flow.is_idle() && self.beside.is_idle()
    }

    /// Handles operations that have ended, and begins operations that are due.
    #[inline]
    pub(super) fn turn(&mut self, cx: &mut Cx<'_>) {
        self.kv.on_time(cx);
        while let Some(end) = self.kv.next_end() {
            self.on_end(end, cx);
        }
        if let Err(wrong) = self.beside.turn(&mut self.kv, cx) {
            self.flow.on_wrong(wrong);
        }
        for _ in 0..self.flow.due() {
            let Some(slot) = self.flow.take() else {
                break;
            };
            match self.what {
                What::Kv => self.begin_kv(slot, cx),
                What::Echo => self.begin_echo(slot, cx),
            }
        }
    }

    #[inline]
    fn begin_kv(&mut self, slot: u32, cx: &mut Cx<'_>) {
        let token = Token(slot.into());
        let begun = match self.flow.operations(slot) {
            [operation] => {
                let Operation { number, is_get } = *operation;
                let key = items::key(number);
                let request = if is_get {
                    Request::Get { key: &key }
                } else {
                    items::fill(&mut self.value, number);
                    Request::Write(Store::set(&key, &self.value))
                };
                self.kv.begin(&request, token, None, cx)
            }
            many => {
                self.keys.clear();
                self.keys
                    .extend(many.iter().map(|it| items::key(it.number)));
                let keys: Vec<&[u8]> = self.keys.iter().map(|key| &key[..]).collect();
                self.kv.begin_multi(&keys, token, None, cx)
            }
        };
        if let Err(error) = begun {
            self.flow
                .on_wrong(format!("an operation cannot begin: {error}"));
        }
    }

    #[inline]
    fn on_end(&mut self, end: End, cx: &mut Cx<'_>) {
        match self.beside.on_end(&end) {
            Ok(false) => {}
            Ok(true) => return end.recycle(cx),
            Err(wrong) => return self.flow.on_wrong(wrong),
        }
        let slot = u32::try_from(end.token.0).expect("the token is a slot");
        let is_right = match (&end.result, self.flow.operations(slot)) {
            (Ok(Reply::Found(found)), [operation]) => {
                operation.is_get && items::is_value(found.value(), operation.number)
            }
            (Ok(Reply::Written(_)), [operation]) => !operation.is_get,
            (Ok(Reply::Items(found)), many) => {
                let is_right = |(found, it): (&Result<Option<Item>, Error>, &Operation)| {
                    let found = found.as_ref().ok().and_then(Option::as_ref);
                    found.is_some_and(|found| items::is_value(&found.value, it.number))
                };
                found.len() == many.len() && found.iter().zip(many).all(is_right)
            }
            _ => false,
        };
        if !is_right {
            self.flow
                .on_wrong(format!("a wrong result: {:?}", end.result));
        }
        end.recycle(cx);
        self.flow.on_end(slot);
    }

    #[inline]
    fn begin_echo(&mut self, slot: u32, cx: &mut Cx<'_>) {
        let is_get = self.flow.operations(slot)[0].is_get;
        if let Err(error) = self.echo.begin(slot, is_get, cx) {
            self.flow.on_wrong(error);
        }
    }

    /// Handles a call that has ended: an echo, or a call of the service.
    #[inline]
    pub(super) fn on_done(&mut self, done: Done, cx: &mut Cx<'_>) {
        let Some(done) = self.kv.on_done(done, cx) else {
            return;
        };
        let slot = slot_of(done.tag);
        let is_get = self.flow.operations(slot)[0].is_get;
        if let Err(wrong) = self.echo.on_done(done, is_get) {
            self.flow.on_wrong(wrong);
        }
        self.flow.on_end(slot);
    }
}

/// The slot of an echo.
#[inline]
fn slot_of(tag: Tag) -> u32 {
    u32::try_from(tag.0 & (MOST as u64 - 1)).expect("it has few bits")
}

impl Echo {
    #[inline]
    fn begin(&mut self, slot: u32, is_get: bool, cx: &mut Cx<'_>) -> Result<(), String> {
        let kind = usize::from(!is_get);
        let bufs = match self.free[kind].pop() {
            Some(bufs) => bufs,
            None => self.bufs(kind, cx)?,
        };
        let [mut request, response] = bufs;
        self.counter += 1;
        let tag = self.counter << SLOT_BITS | u64::from(slot);
        work::fill(request.data_mut(), tag);
        let session = self.session.ok_or("there is no session")?;
        let called = cx.call(session, ECHOES[kind], request, response, Tag(tag));
        called.map(|_| ()).map_err(|refused| refused.to_string())
    }

    fn bufs(&self, kind: usize, cx: &mut Cx<'_>) -> Result<[MsgBuf; 2], String> {
        let [request, response] = self.lens[kind];
        match (cx.buf(request), cx.buf(response)) {
            (Ok(request), Ok(response)) => Ok([request, response]),
            _ => Err("there is no memory for messages".to_owned()),
        }
    }

    #[inline]
    fn on_done(&mut self, done: Done, is_get: bool) -> Result<(), String> {
        let kind = usize::from(!is_get);
        let [request, response] = self.lens[kind];
        let answer = done.response.data();
        let is_right = done.result.is_ok()
            && answer.len() == response
            && work::is_answer(answer, request, done.tag.0);
        if !is_right {
            return Err(format!("a wrong echo: {:?}", done.result));
        }
        self.free[kind].push([done.request, done.response]);
        Ok(())
    }
}
