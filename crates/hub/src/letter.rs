//! The content of a call's slot: its request on the way to the endpoint's thread, and its end on
//! the way back.

use dunlin_channel::Terms;
use dunlin_msgbuf::MsgBuf;
use dunlin_wire::ReqType;

use crate::error::ChannelError;
use crate::orders::Doorbell;
use crate::places::Place;
use dunlin_mailbox as mailbox;

/// Slots keep the memory of a request for the next one, up to this many bytes: 4 MiB for a channel
/// that has had 4096 calls at once.
const KEPT: usize = 1 << 10;

/// A request, and how its call ended.
#[derive(Debug)]
pub(crate) struct Letter {
    /// The channel.
    pub(crate) channel: u32,
    pub(crate) req_type: ReqType,
    /// Bytes for the response.
    pub(crate) room: usize,
    pub(crate) terms: Terms,
    pub(crate) body: Vec<u8>,
    pub(crate) end: Option<Result<MsgBuf, ChannelError>>,
    /// The place of the call, unless an attempt at it has that.
    place: Option<Place>,
}

/// The mailbox of an endpoint's thread.
pub(crate) type Mailbox = mailbox::Mailbox<Letter, Doorbell>;

impl Default for Letter {
    fn default() -> Self {
        Self {
            channel: 0,
            req_type: ReqType(0),
            room: 0,
            terms: Terms::default(),
            body: Vec::new(),
            end: None,
            place: None,
        }
    }
}

impl Letter {
    /// A request is written into the slot.
    pub(crate) fn on_call(&mut self, channel: u32, place: Place, req_type: ReqType, body: &[u8]) {
        self.place = Some(place);
        self.channel = channel;
        self.req_type = req_type;
        self.end = None;
        self.body.clear();
        self.body.extend_from_slice(body);
    }

    /// The call ends, so the request is needed no longer.
    pub(crate) fn on_end(&mut self, end: Result<MsgBuf, ChannelError>) {
        self.end = Some(end);
        self.shrink();
    }

    /// The call is sent: its place goes to the attempt.
    pub(crate) fn take_place(&mut self) -> Option<Place> {
        self.place.take()
    }

    /// An attempt has ended, and a server holds nothing of it.
    pub(crate) fn return_place(&mut self, place: Place) {
        self.place = Some(place);
    }

    /// The caller takes the end.
    pub(crate) fn on_seen(&mut self) -> Option<Result<MsgBuf, ChannelError>> {
        self.place = None;
        self.end.take()
    }

    /// The caller has dropped the call, which may have ended.
    pub(crate) fn on_dropped(&mut self) -> Option<Result<MsgBuf, ChannelError>> {
        self.shrink();
        self.on_seen()
    }

    fn shrink(&mut self) {
        if self.body.capacity() > KEPT {
            self.body = Vec::new();
        }
    }
}

impl mailbox::Letter for Letter {
    fn on_closed(&mut self) {
        self.place = None;
        self.on_end(Err(ChannelError::Closed));
    }
}

#[cfg(test)]
mod tests;
