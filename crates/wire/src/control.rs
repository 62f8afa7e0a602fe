//! Control messages, which two nexus processes exchange over a stream (rules C1 to C15, design §9).
//! They open and end sessions, and show whether the other process is alive.
//!
//! Every message is one frame: a 4-byte length, version, type, body (rule C1). [`frame_len`]
//! finds the frames in a stream, [`Message::decode`] reads one, [`Message::encode`] writes one.
//! Nothing allocates: a decoded message borrows from the frame.
//!
//! Both directions check the same limits, so a value that encodes also decodes to the same value,
//! and bytes that decode encode to the same bytes. The state machines in `dunlin-control` decide
//! what the fields mean for a session.

mod codec;
mod error;
mod fields;
mod hello;
mod inquiry;
mod insight;
mod offers;
mod serving;
mod session;

pub use error::{ControlError, Field};
pub use fields::{
    AttemptId, BootId, EndpointIndex, EndpointUid, Features, GoodbyeReason, Incarnation,
    RefuseCode, ResetReason,
};
pub use hello::{Hello, MAX_UNIX_NAME};
pub use inquiry::{Account, Fate, Fates, Inquiry, MAX_INQUIRED, Requests};
pub use insight::{Insight, InsightRead, MAX_INSIGHT};
pub use offers::{MAX_OFFER_BYTES, MAX_OFFER_FDS, MAX_OFFERS, Offer, Offers, TransportKind};
pub use serving::Serving;
pub use session::{
    Accept, Connect, Found, Lookup, MAX_DATA_SIZE, MAX_DETAIL, MAX_MESSAGE, MAX_PACKETS,
    MAX_WINDOW_LOG2, MIN_DATA_SIZE, Refuse, SessionRef, SessionSide,
};

use codec::{Reader, Writer};

#[cfg(test)]
mod tests;

/// Version of the control messages. A frame of another version closes the connection.
pub const CONTROL_VERSION: u8 = 1;

/// Bytes of the length in front of every frame.
pub const LENGTH_LEN: usize = 4;

/// Largest value of that length: version, type and body of the largest message.
pub const MAX_FRAME_BODY: usize = 4096;

/// The most bytes of a whole frame; a buffer of this size can hold and encode every message.
pub const MAX_FRAME: usize = LENGTH_LEN + MAX_FRAME_BODY;

/// Smallest value of the length: version and type.
const MIN_FRAME_BODY: usize = 2;

/// One control message. The table in rule C1 has the type numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Message<'a> {
    /// The first message on a connection, from the side that opened it (rule C2).
    Hello(Hello<'a>),
    /// The answer to a Hello, with the other side's identity (rule C2).
    HelloAck(Hello<'a>),
    /// Asks for a session (rule C4).
    Connect(Connect<'a>),
    /// Grants the session (rule C5).
    Accept(Accept<'a>),
    /// Declines to grant the session (rule C5).
    Refuse(Refuse<'a>),
    /// Closes the receiver's session in an orderly way (rule C6).
    Disconnect(SessionRef),
    /// Confirms that the session is closed, as the receiver asked (rule C6).
    DisconnectAck(SessionRef),
    /// Informs the receiver that the sender no longer has its session (rule C6).
    Reset {
        /// The session at the receiver.
        session: SessionRef,
        /// Why it ended.
        reason: ResetReason,
    },
    /// The sender is alive (rule C7).
    Heartbeat {
        /// Grows by one with each heartbeat of a connection.
        counter: u64,
    },
    /// The sender is alive, and has received the heartbeat with this counter (rule C7).
    HeartbeatAck {
        /// The counter of that heartbeat.
        counter: u64,
    },
    /// The last message on a connection (rule C9).
    Goodbye {
        /// Why the sender closes the connection.
        reason: GoodbyeReason,
    },
    /// Asks which endpoint an index names. Offers to that endpoint come later (rule C4).
    Lookup(Lookup),
    /// Answers a look-up. If no endpoint is found, a refusal is the answer (rule C4).
    Found(Found),
    /// Asks for a part of the process's counters file (rule C10).
    InsightRead(InsightRead),
    /// The requested part of that file (rule C10).
    Insight(Insight<'a>),
    /// Asks for the fates of requests (rule C11).
    Inquiry(Inquiry<'a>),
    /// Answers an inquiry (rule C11).
    Account(Account<'a>),
    /// Shows that two connections come from the same process (rule C3).
    Nonce {
        /// Drawn by the side that opened the connection; the other side repeats it.
        nonce: u64,
    },
    /// Returns the content of a challenge (rule C13).
    Proof {
        /// The eight bytes of the challenge, as an integer.
        secret: u64,
    },
    /// The services of the sender's process from now on (rules C14 and C15).
    Serving(Serving),
}

/// Length of the frame at the start of `stream`, or `None` while it is not complete (rule C1).
///
/// A reader that collects bytes calls it again after each read. When it returns `Some(n)`, the
/// reader passes the first `n` bytes to [`Message::decode`]. A length out of bounds is reported as
/// soon as its 4 bytes have arrived, so no reader waits for, or buffers, a frame that is too large.
///
/// # Errors
/// [`ControlError::Length`] if no frame can have the length that the stream announces.
///
/// ```
/// use dunlin_wire::control::{Message, MAX_FRAME, frame_len};
///
/// let mut out = [0; MAX_FRAME];
/// let len = Message::Heartbeat { counter: 7 }.encode(&mut out)?;
/// assert_eq!(frame_len(&out[..len - 1])?, None);
/// assert_eq!(frame_len(&out[..len])?, Some(len));
/// assert_eq!(Message::decode(&out[..len])?, Message::Heartbeat { counter: 7 });
/// # Ok::<(), dunlin_wire::control::ControlError>(())
/// ```
pub fn frame_len(stream: &[u8]) -> Result<Option<usize>, ControlError> {
    let Some(raw) = stream.first_chunk::<LENGTH_LEN>() else {
        return Ok(None);
    };
    let body = usize::try_from(u32::from_le_bytes(*raw)).map_err(|_| ControlError::Length)?;
    if !(MIN_FRAME_BODY..=MAX_FRAME_BODY).contains(&body) {
        return Err(ControlError::Length);
    }
    let frame = LENGTH_LEN + body;
    Ok((stream.len() >= frame).then_some(frame))
}

impl<'a> Message<'a> {
    /// Reads the message in `frame`, which is exactly one frame as [`frame_len`] delimits it.
    ///
    /// # Errors
    /// The first reason why the frame is not a message. The caller must close the connection that
    /// carried it, and do nothing else (rule C9).
    pub fn decode(frame: &'a [u8]) -> Result<Self, ControlError> {
        if frame_len(frame)? != Some(frame.len()) {
            return Err(ControlError::Length);
        }
        let mut body = Reader::new(&frame[LENGTH_LEN..]);
        if body.u8(Field::Version)? != CONTROL_VERSION {
            return Err(ControlError::Version);
        }
        let kind = body.u8(Field::Type)?;
        let message = Self::read_body(kind, &mut body)?;
        if body.is_empty() {
            Ok(message)
        } else {
            Err(ControlError::Trailing)
        }
    }

    /// Whether the message only asks for an answer.
    pub const fn is_question(&self) -> bool {
        matches!(
            self,
            Self::Lookup(_)
                | Self::Connect(_)
                | Self::Heartbeat { .. }
                | Self::InsightRead(_)
                | Self::Inquiry(_)
                | Self::Nonce { .. }
        )
    }

    /// Writes the message as a frame to the start of `out` and returns the frame's length.
    ///
    /// A buffer of [`MAX_FRAME`] bytes is always large enough.
    ///
    /// # Errors
    /// [`ControlError::Space`] if `out` is too small, [`ControlError::Value`] if a field exceeds
    /// its limit. The content of `out` is then undefined.
    pub fn encode(&self, out: &mut [u8]) -> Result<usize, ControlError> {
        let (length, body) = out
            .split_first_chunk_mut::<LENGTH_LEN>()
            .ok_or(ControlError::Space)?;
        let mut writer = Writer::new(body);
        writer.u8(CONTROL_VERSION)?;
        writer.u8(self.type_number())?;
        self.write_body(&mut writer)?;
        let written = writer.written();
        debug_assert!(
            written <= MAX_FRAME_BODY,
            "the limits of the fields bound every frame"
        );
        let announced = u32::try_from(written).map_err(|_| ControlError::Length)?;
        *length = announced.to_le_bytes();
        Ok(LENGTH_LEN + written)
    }

    const fn type_number(&self) -> u8 {
        match self {
            Self::Hello(_) => 1,
            Self::HelloAck(_) => 2,
            Self::Connect(_) => 3,
            Self::Accept(_) => 4,
            Self::Refuse(_) => 5,
            Self::Disconnect(_) => 6,
            Self::DisconnectAck(_) => 7,
            Self::Reset { .. } => 8,
            Self::Heartbeat { .. } => 9,
            Self::HeartbeatAck { .. } => 10,
            Self::Goodbye { .. } => 11,
            Self::Lookup(_) => 12,
            Self::Found(_) => 13,
            Self::InsightRead(_) => 14,
            Self::Insight(_) => 15,
            Self::Inquiry(_) => 16,
            Self::Account(_) => 17,
            Self::Nonce { .. } => 18,
            Self::Proof { .. } => 19,
            Self::Serving(_) => 20,
        }
    }

    fn read_body(kind: u8, body: &mut Reader<'a>) -> Result<Self, ControlError> {
        Ok(match kind {
            1 => Self::Hello(Hello::read(body)?),
            2 => Self::HelloAck(Hello::read(body)?),
            3 => Self::Connect(Connect::read(body)?),
            4 => Self::Accept(Accept::read(body)?),
            5 => Self::Refuse(Refuse::read(body)?),
            6 => Self::Disconnect(SessionRef::read(body)?),
            7 => Self::DisconnectAck(SessionRef::read(body)?),
            8 => Self::Reset {
                session: SessionRef::read(body)?,
                reason: ResetReason::read(body)?,
            },
            9 => Self::Heartbeat {
                counter: body.u64(Field::Counter)?,
            },
            10 => Self::HeartbeatAck {
                counter: body.u64(Field::Counter)?,
            },
            11 => Self::Goodbye {
                reason: GoodbyeReason::read(body)?,
            },
            12 => Self::Lookup(Lookup::read(body)?),
            13 => Self::Found(Found::read(body)?),
            14 => Self::InsightRead(InsightRead::read(body)?),
            15 => Self::Insight(Insight::read(body)?),
            16 => Self::Inquiry(Inquiry::read(body)?),
            17 => Self::Account(Account::read(body)?),
            18 => Self::Nonce {
                nonce: body.u64(Field::Nonce)?,
            },
            19 => Self::Proof {
                secret: body.u64(Field::Secret)?,
            },
            20 => Self::Serving(Serving::read(body)?),
            _ => return Err(ControlError::Type),
        })
    }

    fn write_body(&self, out: &mut Writer<'_>) -> Result<(), ControlError> {
        match self {
            Self::Hello(hello) | Self::HelloAck(hello) => hello.write(out),
            Self::Connect(connect) => connect.write(out),
            Self::Accept(accept) => accept.write(out),
            Self::Refuse(refuse) => refuse.write(out),
            Self::Disconnect(session) | Self::DisconnectAck(session) => session.write(out),
            Self::Reset { session, reason } => {
                session.write(out)?;
                reason.write(out)
            }
            Self::Heartbeat { counter } | Self::HeartbeatAck { counter } => out.u64(*counter),
            Self::Goodbye { reason } => reason.write(out),
            Self::Lookup(lookup) => lookup.write(out),
            Self::Found(found) => found.write(out),
            Self::InsightRead(read) => read.write(out),
            Self::Insight(part) => part.write(out),
            Self::Inquiry(inquiry) => inquiry.write(out),
            Self::Account(account) => account.write(out),
            Self::Nonce { nonce } => out.u64(*nonce),
            Self::Proof { secret } => out.u64(*secret),
            Self::Serving(serving) => serving.write(out),
        }
    }
}
