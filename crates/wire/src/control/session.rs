//! Opening and ending a session: connect, accept, refuse, and the name that later messages use for
//! a session (rules C4 to C6).

use super::codec::{Reader, Writer};
use super::{AttemptId, ControlError, EndpointIndex, EndpointUid, Field, Offers, RefuseCode};
use crate::{ReqNum, SessionNum, Token};

/// Binary logarithm of the largest window: 64 slots (rule S1).
pub const MAX_WINDOW_LOG2: u8 = 6;

/// Fewest data bytes per packet that a session may have.
pub const MIN_DATA_SIZE: u32 = 16;

/// The most data bytes per packet that a session may have: 1 MiB.
pub const MAX_DATA_SIZE: u32 = 1 << 20;

/// Bytes of the largest message that any session may have: 1 GiB.
pub const MAX_MESSAGE: u32 = 1 << 30;

/// The most packets of one message: cumulative packet numbers have 24 bits (rule W7).
pub const MAX_PACKETS: u32 = (1 << 24) - 1;

/// The most bytes of the explanation in a refusal.
pub const MAX_DETAIL: u8 = 128;

/// One side of a session that is being opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SessionSide<'a> {
    /// The endpoint of this side.
    pub endpoint: EndpointUid,
    /// This side's number for the session; packets to this side carry it.
    pub session: SessionNum,
    /// This side's token for the session; packets to this side carry it.
    pub token: Token,
    /// Binary logarithm of the window, from 0 to [`MAX_WINDOW_LOG2`].
    pub window_log2: u8,
    /// Packets of the session that may be in flight in either direction; at least 1.
    pub credits: u16,
    /// Data bytes per packet, from [`MIN_DATA_SIZE`] to [`MAX_DATA_SIZE`].
    pub data_size: u32,
    /// Bytes of the largest message that this side receives, at most [`MAX_MESSAGE`], and at most
    /// [`MAX_PACKETS`] packets.
    pub max_message: u32,
    /// Base of the numbers of the requests that this side issues; a multiple of the window,
    /// normally 0 (rule S1).
    pub first_req: ReqNum,
    /// In a connect: ways to reach this side. In an accept: ways to reach the other side, over the
    /// transports that it chose from the offers.
    pub offers: Offers<'a>,
}

/// Asks which endpoint an index names.
///
/// A transport must know the endpoint before it makes an offer, because all sessions between two
/// endpoints share one channel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lookup {
    /// Names the attempt. The answer repeats it, and the connect that follows keeps it.
    pub attempt: AttemptId,
    /// The index; [`EndpointIndex::ANY`] lets the other nexus choose.
    pub target: EndpointIndex,
}

/// Answers a look-up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Found {
    /// The attempt of the look-up.
    pub attempt: AttemptId,
    /// The index of the endpoint that was found; never [`EndpointIndex::ANY`].
    pub target: EndpointIndex,
    /// The endpoint that has this index now.
    pub endpoint: EndpointUid,
}

/// Asks for a session with an endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Connect<'a> {
    /// Names the attempt; the answer repeats it.
    pub attempt: AttemptId,
    /// The requested endpoint.
    pub target: EndpointIndex,
    /// The side that asks.
    pub client: SessionSide<'a>,
}

/// Grants a session. After sending this, the accepting side expects packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Accept<'a> {
    /// The attempt of the connect.
    pub attempt: AttemptId,
    /// The accepting side. Window, credits and data size apply to the whole session: none exceeds
    /// the client's value.
    pub server: SessionSide<'a>,
}

/// Declines to grant a session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Refuse<'a> {
    /// The attempt of the connect or look-up.
    pub attempt: AttemptId,
    /// Why, for programs.
    pub code: RefuseCode,
    /// Why, for people: at most [`MAX_DETAIL`] bytes without control characters, so that a peer
    /// cannot steer the terminal or the log that shows the text.
    pub detail: &'a str,
}

/// Names a session of the receiver, and proves that the sender knows it (rule C6).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SessionRef {
    /// The receiver's number for the session.
    pub session: SessionNum,
    /// The receiver's token for the session.
    pub token: Token,
}

impl SessionSide<'_> {
    /// The window: how many requests of one direction may be in progress.
    pub const fn window(&self) -> u32 {
        1 << self.window_log2
    }
}

impl<'a> SessionSide<'a> {
    fn read(body: &mut Reader<'a>) -> Result<Self, ControlError> {
        let side = Self {
            endpoint: EndpointUid(body.array(Field::EndpointUid)?),
            session: SessionNum(body.u32(Field::Session)?),
            token: Token(body.u32(Field::Token)?),
            window_log2: body.u8(Field::Window)?,
            credits: body.u16(Field::Credits)?,
            data_size: body.u32(Field::DataSize)?,
            max_message: body.u32(Field::MaxMessage)?,
            first_req: ReqNum(body.u32(Field::FirstReq)?),
            offers: Offers::read(body)?,
        };
        side.check()?;
        Ok(side)
    }

    fn write(&self, out: &mut Writer<'_>) -> Result<(), ControlError> {
        self.check()?;
        out.bytes(&self.endpoint.0)?;
        out.u32(self.session.0)?;
        out.u32(self.token.0)?;
        out.u8(self.window_log2)?;
        out.u16(self.credits)?;
        out.u32(self.data_size)?;
        out.u32(self.max_message)?;
        out.u32(self.first_req.0)?;
        self.offers.write(out)
    }

    /// Checks the limits that hold for every session, whatever the configuration of its endpoints.
    fn check(&self) -> Result<(), ControlError> {
        let bad = |field| Err(ControlError::Value(field));
        if self.window_log2 > MAX_WINDOW_LOG2 {
            return bad(Field::Window);
        }
        if self.credits == 0 {
            return bad(Field::Credits);
        }
        if !(MIN_DATA_SIZE..=MAX_DATA_SIZE).contains(&self.data_size) {
            return bad(Field::DataSize);
        }
        let packets = self.max_message.div_ceil(self.data_size);
        if self.max_message > MAX_MESSAGE || packets > MAX_PACKETS {
            return bad(Field::MaxMessage);
        }
        if self.first_req.slot(self.window()) != 0 {
            return bad(Field::FirstReq);
        }
        Ok(())
    }
}

impl Lookup {
    pub(super) fn read(body: &mut Reader<'_>) -> Result<Self, ControlError> {
        Ok(Self {
            attempt: AttemptId(body.u64(Field::Attempt)?),
            target: EndpointIndex(body.u16(Field::Target)?),
        })
    }

    pub(super) fn write(&self, out: &mut Writer<'_>) -> Result<(), ControlError> {
        out.u64(self.attempt.0)?;
        out.u16(self.target.0)
    }
}

impl Found {
    pub(super) fn read(body: &mut Reader<'_>) -> Result<Self, ControlError> {
        let found = Self {
            attempt: AttemptId(body.u64(Field::Attempt)?),
            target: EndpointIndex(body.u16(Field::Target)?),
            endpoint: EndpointUid(body.array(Field::EndpointUid)?),
        };
        found.check()?;
        Ok(found)
    }

    pub(super) fn write(&self, out: &mut Writer<'_>) -> Result<(), ControlError> {
        self.check()?;
        out.u64(self.attempt.0)?;
        out.u16(self.target.0)?;
        out.bytes(&self.endpoint.0)
    }

    fn check(&self) -> Result<(), ControlError> {
        if self.target == EndpointIndex::ANY {
            return Err(ControlError::Value(Field::Target));
        }
        Ok(())
    }
}

impl<'a> Connect<'a> {
    pub(super) fn read(body: &mut Reader<'a>) -> Result<Self, ControlError> {
        Ok(Self {
            attempt: AttemptId(body.u64(Field::Attempt)?),
            target: EndpointIndex(body.u16(Field::Target)?),
            client: SessionSide::read(body)?,
        })
    }

    pub(super) fn write(&self, out: &mut Writer<'_>) -> Result<(), ControlError> {
        out.u64(self.attempt.0)?;
        out.u16(self.target.0)?;
        self.client.write(out)
    }
}

impl<'a> Accept<'a> {
    pub(super) fn read(body: &mut Reader<'a>) -> Result<Self, ControlError> {
        Ok(Self {
            attempt: AttemptId(body.u64(Field::Attempt)?),
            server: SessionSide::read(body)?,
        })
    }

    pub(super) fn write(&self, out: &mut Writer<'_>) -> Result<(), ControlError> {
        out.u64(self.attempt.0)?;
        self.server.write(out)
    }
}

impl<'a> Refuse<'a> {
    pub(super) fn read(body: &mut Reader<'a>) -> Result<Self, ControlError> {
        let refuse = Self {
            attempt: AttemptId(body.u64(Field::Attempt)?),
            code: RefuseCode::read(body)?,
            detail: body.str(MAX_DETAIL, Field::Detail)?,
        };
        refuse.check()?;
        Ok(refuse)
    }

    pub(super) fn write(&self, out: &mut Writer<'_>) -> Result<(), ControlError> {
        self.check()?;
        out.u64(self.attempt.0)?;
        self.code.write(out)?;
        out.str(self.detail, MAX_DETAIL, Field::Detail)
    }

    fn check(&self) -> Result<(), ControlError> {
        if self.detail.contains(char::is_control) {
            return Err(ControlError::Value(Field::Detail));
        }
        Ok(())
    }
}

impl SessionRef {
    pub(super) fn read(body: &mut Reader<'_>) -> Result<Self, ControlError> {
        Ok(Self {
            session: SessionNum(body.u32(Field::Session)?),
            token: Token(body.u32(Field::Token)?),
        })
    }

    pub(super) fn write(&self, out: &mut Writer<'_>) -> Result<(), ControlError> {
        out.u32(self.session.0)?;
        out.u32(self.token.0)
    }
}
