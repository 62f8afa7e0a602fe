//! Inquiry and account: the fates of requests that have no answer (rule C11).
//!
//! Requests and their fates stay in the frame that was decoded, so that a message is small;
//! [`Requests::list`] and [`Fates::list`] write such bytes.

use super::codec::{Reader, Writer};
use super::{ControlError, Field, SessionRef};
use crate::ReqNum;

/// The most requests that one inquiry names: the slots of the largest window.
pub const MAX_INQUIRED: usize = 1 << super::MAX_WINDOW_LOG2;

/// Bytes of a request's number.
const NUMBER_LEN: usize = 4;

/// Bytes of a request's number and its fate.
const FATE_LEN: usize = NUMBER_LEN + 1;

/// Asks for the fates of requests of a session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Inquiry<'a> {
    /// The session at the receiver.
    pub session: SessionRef,
    /// Requests that the sender of the inquiry has issued.
    pub requests: Requests<'a>,
}

/// Answers an inquiry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Account<'a> {
    /// The session at the receiver.
    pub session: SessionRef,
    /// If not 0, the endpoint has received no packets for at least this number of nanoseconds,
    /// because its thread is in a handler; then the account lists no fates. If 0, the endpoint
    /// itself wrote the account.
    pub away: u64,
    /// The fates of the requests.
    pub fates: Fates<'a>,
}

/// The fate of a request, as its server side reports it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum Fate {
    /// The server has accepted no packet of the request; the number may also be wrong.
    Unknown = 0,
    /// Some packets of the request have arrived.
    Arriving = 1,
    /// The whole request has arrived, and its handler has not answered.
    Running = 2,
    /// The request has an answer, which the server still keeps for its client.
    Answered = 3,
    /// The request has ended, and the server no longer has its answer.
    Gone = 4,
}

impl Fate {
    /// All fates, by their numbers.
    pub const ALL: [Self; 5] = [
        Self::Unknown,
        Self::Arriving,
        Self::Running,
        Self::Answered,
        Self::Gone,
    ];
}

/// Numbers of requests: at least one and at most [`MAX_INQUIRED`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Requests<'a>(pub(super) &'a [u8]);

impl<'a> Requests<'a> {
    /// Writes these numbers to `out`, and borrows them from there.
    pub fn list(numbers: &[ReqNum], out: &'a mut [u8; MAX_INQUIRED * NUMBER_LEN]) -> Option<Self> {
        if numbers.is_empty() || numbers.len() > MAX_INQUIRED {
            return None;
        }
        let (places, _) = out.as_chunks_mut::<NUMBER_LEN>();
        for (place, number) in places.iter_mut().zip(numbers) {
            *place = number.0.to_le_bytes();
        }
        Some(Self(&out[..numbers.len() * NUMBER_LEN]))
    }

    /// The numbers, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = ReqNum> + 'a {
        let (numbers, _) = self.0.as_chunks::<NUMBER_LEN>();
        numbers
            .iter()
            .map(|number| ReqNum(u32::from_le_bytes(*number)))
    }
}

/// Requests and their fates: [`MAX_INQUIRED`] at most, or none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fates<'a>(pub(super) &'a [u8]);

impl<'a> Fates<'a> {
    /// No requests.
    pub const NONE: Self = Self(&[]);

    /// Writes these requests and fates to `out`, and borrows them from there.
    pub fn list(
        fates: &[(ReqNum, Fate)],
        out: &'a mut [u8; MAX_INQUIRED * FATE_LEN],
    ) -> Option<Self> {
        if fates.len() > MAX_INQUIRED {
            return None;
        }
        let (places, _) = out.as_chunks_mut::<FATE_LEN>();
        for (place, (ReqNum(number), fate)) in places.iter_mut().zip(fates) {
            let [a, b, c, d] = number.to_le_bytes();
            *place = [a, b, c, d, *fate as u8];
        }
        Some(Self(&out[..fates.len() * FATE_LEN]))
    }

    /// The requests with their fates, in order.
    pub fn iter(&self) -> impl Iterator<Item = (ReqNum, Fate)> + 'a {
        let (fates, _) = self.0.as_chunks::<FATE_LEN>();
        fates.iter().filter_map(|[a, b, c, d, fate]| {
            let number = ReqNum(u32::from_le_bytes([*a, *b, *c, *d]));
            Some((number, fate_of(*fate)?))
        })
    }
}

fn fate_of(number: u8) -> Option<Fate> {
    Fate::ALL.get(usize::from(number)).copied()
}

impl<'a> Inquiry<'a> {
    pub(super) fn read(body: &mut Reader<'a>) -> Result<Self, ControlError> {
        let session = SessionRef::read(body)?;
        let count = usize::from(body.u8(Field::Requests)?);
        let most = MAX_INQUIRED * NUMBER_LEN;
        let requests = Requests(body.bytes(count * NUMBER_LEN, most, Field::Requests)?);
        let inquiry = Self { session, requests };
        inquiry.check()?;
        Ok(inquiry)
    }

    pub(super) fn write(&self, out: &mut Writer<'_>) -> Result<(), ControlError> {
        self.check()?;
        self.session.write(out)?;
        out.u8(count(self.requests.0.len() / NUMBER_LEN)?)?;
        out.bytes(self.requests.0)
    }

    /// Refuses an inquiry that names no request.
    fn check(&self) -> Result<(), ControlError> {
        match self.requests.0.is_empty() {
            true => Err(ControlError::Value(Field::Requests)),
            false => Ok(()),
        }
    }
}

impl<'a> Account<'a> {
    pub(super) fn read(body: &mut Reader<'a>) -> Result<Self, ControlError> {
        let session = SessionRef::read(body)?;
        let away = body.u64(Field::Away)?;
        let count = usize::from(body.u8(Field::Fates)?);
        let fates = Fates(body.bytes(count * FATE_LEN, MAX_INQUIRED * FATE_LEN, Field::Fates)?);
        let account = Self {
            session,
            away,
            fates,
        };
        account.check()?;
        Ok(account)
    }

    pub(super) fn write(&self, out: &mut Writer<'_>) -> Result<(), ControlError> {
        self.check()?;
        self.session.write(out)?;
        out.u64(self.away)?;
        out.u8(count(self.fates.0.len() / FATE_LEN)?)?;
        out.bytes(self.fates.0)
    }

    /// Refuses fates in an account of an endpoint that is away, and fates without a name.
    fn check(&self) -> Result<(), ControlError> {
        let (entries, _) = self.fates.0.as_chunks::<FATE_LEN>();
        let known = |[.., fate]: &[u8; FATE_LEN]| fate_of(*fate).is_some();
        match entries.iter().all(known) && (self.away == 0 || entries.is_empty()) {
            true => Ok(()),
            false => Err(ControlError::Value(Field::Fates)),
        }
    }
}

fn count(entries: usize) -> Result<u8, ControlError> {
    u8::try_from(entries).map_err(|_| ControlError::Space)
}
