//! Transport offers: how a side of a session can be reached (rules C4 and C5).
//!
//! The control plane passes them on without reading them: the bytes of an offer belong to the
//! transport of its kind, and so do the descriptors that a UNIX socket passes with the message.

use super::codec::{Reader, Writer};
use super::{ControlError, Field};

/// Most offers in one message.
pub const MAX_OFFERS: usize = 4;

/// The most bytes of one offer.
pub const MAX_OFFER_BYTES: usize = 256;

/// The most descriptors that go with one offer.
pub const MAX_OFFER_FDS: u8 = 4;

/// The kind of transport of an offer. This is the only table of kinds.
///
/// Unknown kinds are ignored, not refused. A transport over several kinds, such as `auto`, has no
/// kind of its own: it makes an offer of each kind, so that it can connect to endpoints that have
/// only one of them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct TransportKind(pub u8);

impl TransportKind {
    /// Rings in shared memory.
    pub const SHM: Self = Self(1);
    /// Kernel UDP.
    pub const UDP: Self = Self(2);
    /// The simulated network.
    pub const SIM: Self = Self(3);
}

/// One way to reach a side of a session.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Offer<'a> {
    /// The transport that can read `bytes`.
    pub kind: TransportKind,
    /// Number of descriptors of this offer, at most [`MAX_OFFER_FDS`]. The UNIX socket passes them
    /// with the message, in the order of the offers; over TCP, only 0 makes sense.
    pub fds: u8,
    /// The address, and any other data of the transport, at most [`MAX_OFFER_BYTES`] bytes.
    pub bytes: &'a [u8],
}

/// Up to [`MAX_OFFERS`] offers, best first.
#[derive(Clone, Copy, Default)]
pub struct Offers<'a> {
    list: [Offer<'a>; MAX_OFFERS],
    len: usize,
}

impl<'a> Offers<'a> {
    /// The offers of `list`, in its order.
    ///
    /// # Errors
    /// [`ControlError::Value`] if there are too many, or one of them exceeds its limits.
    ///
    /// ```
    /// use dunlin_wire::control::{Offer, Offers, TransportKind};
    ///
    /// let udp = Offer { kind: TransportKind::UDP, fds: 0, bytes: &[127, 0, 0, 1, 0x6A, 0x7C] };
    /// let offers = Offers::new(&[udp])?;
    /// assert_eq!(offers.find(TransportKind::UDP), Some(&udp));
    /// assert_eq!(offers.find(TransportKind::SHM), None);
    /// # Ok::<(), dunlin_wire::control::ControlError>(())
    /// ```
    pub fn new(list: &[Offer<'a>]) -> Result<Self, ControlError> {
        let mut offers = Self::default();
        let places = offers
            .list
            .get_mut(..list.len())
            .ok_or(ControlError::Value(Field::OfferCount))?;
        places.copy_from_slice(list);
        offers.len = list.len();
        list.iter().try_for_each(Offer::check)?;
        Ok(offers)
    }

    /// The offers as a slice.
    pub fn as_slice(&self) -> &[Offer<'a>] {
        &self.list[..self.len]
    }

    /// The first offer of this kind.
    pub fn find(&self, kind: TransportKind) -> Option<&Offer<'a>> {
        self.as_slice().iter().find(|offer| offer.kind == kind)
    }

    /// Number of descriptors passed with the message.
    pub fn fd_count(&self) -> usize {
        self.as_slice()
            .iter()
            .map(|offer| usize::from(offer.fds))
            .sum()
    }

    pub(super) fn read(body: &mut Reader<'a>) -> Result<Self, ControlError> {
        let len = usize::from(body.u8(Field::OfferCount)?);
        let mut offers = Self {
            len,
            ..Self::default()
        };
        let places = offers
            .list
            .get_mut(..len)
            .ok_or(ControlError::Value(Field::OfferCount))?;
        for offer in places {
            *offer = Offer::read(body)?;
        }
        Ok(offers)
    }

    pub(super) fn write(&self, out: &mut Writer<'_>) -> Result<(), ControlError> {
        let len = u8::try_from(self.len).map_err(|_| ControlError::Value(Field::OfferCount))?;
        out.u8(len)?;
        self.as_slice()
            .iter()
            .try_for_each(|offer| offer.write(out))
    }
}

impl PartialEq for Offers<'_> {
    /// Compares the offers; the content of unused places does not matter.
    fn eq(&self, other: &Self) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl Eq for Offers<'_> {}

impl core::fmt::Debug for Offers<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_list().entries(self.as_slice()).finish()
    }
}

impl<'a> Offer<'a> {
    fn read(body: &mut Reader<'a>) -> Result<Self, ControlError> {
        let kind = TransportKind(body.u8(Field::OfferKind)?);
        let fds = body.u8(Field::OfferFds)?;
        let len = usize::from(body.u16(Field::OfferBytes)?);
        let bytes = body.bytes(len, MAX_OFFER_BYTES, Field::OfferBytes)?;
        let offer = Self { kind, fds, bytes };
        offer.check()?;
        Ok(offer)
    }

    fn write(&self, out: &mut Writer<'_>) -> Result<(), ControlError> {
        let len =
            u16::try_from(self.bytes.len()).map_err(|_| ControlError::Value(Field::OfferBytes))?;
        out.u8(self.kind.0)?;
        out.u8(self.fds)?;
        out.u16(len)?;
        out.bytes(self.bytes)
    }

    fn check(&self) -> Result<(), ControlError> {
        if self.fds > MAX_OFFER_FDS {
            return Err(ControlError::Value(Field::OfferFds));
        }
        if self.bytes.len() > MAX_OFFER_BYTES {
            return Err(ControlError::Value(Field::OfferBytes));
        }
        Ok(())
    }
}
