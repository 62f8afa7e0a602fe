//! How two endpoints get to know each other, for every transport (design §9, §12).
//!
//! A transport cannot reach a peer before the control plane has carried an [`Offer`] to it and an
//! answer back. The client side calls [`Connect::offer`], the server side [`Connect::accept`], the
//! client side [`Connect::complete`] or [`Connect::abandon`]. The nexus moves the bytes and, over
//! a UNIX socket, the descriptors; it understands neither.
//!
//! If a transport chooses between several others for each peer, its offer contains theirs. The
//! control plane carries the parts separately ([`Connect::parts`]), each under the kind of its
//! transport, so two endpoints can connect if they have one kind in common.
//!
//! Invariants:
//! - Nothing here runs on the data path; it may allocate and call the kernel.
//! - Both halves are arguments, so the data path needs no lock and no shared cell.
//! - An offer comes from another process. A transport checks every byte and every descriptor of
//!   it and answers with a [`ConnectError`]; it never panics and never blocks.
//! - Uses of a peer are counted: `accept` and `complete` add one, `release` removes one.
//!   [`Connect::remove`] ends all uses at once. The [`PeerId`] of a released or removed peer is not
//!   soon given to another peer; packets to it are dropped and counted.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{OwnedFd, RawFd};
use std::time::Duration;

use dunlin_core::transport::{Halves, PeerId, Transport};
use dunlin_wire::control::TransportKind;

use crate::counters::Counters;

/// Names an endpoint, uniquely over all processes and restarts.
pub use dunlin_wire::control::EndpointUid;

/// The most bytes in an [`Offer`]; the control message that carries it has this much room.
pub const MAX_OFFER_BYTES: usize = 256;

/// The most descriptors in an [`Offer`].
pub const MAX_OFFER_FDS: usize = 4;

/// The data that endpoints exchange through the control plane so that packets can flow.
#[derive(Debug, Default)]
pub struct Offer {
    /// At most [`MAX_OFFER_BYTES`] bytes, which only the transport understands.
    pub bytes: Vec<u8>,
    /// At most [`MAX_OFFER_FDS`] descriptors; none if the peer is on another host.
    pub fds: Vec<OwnedFd>,
}

/// The other endpoint, as the control plane knows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PeerInfo {
    /// The endpoint.
    pub endpoint: EndpointUid,
    /// Whether it runs on this host, and the control connection can carry descriptors.
    pub same_host: bool,
    /// Whether it claims to be a thread of this process. Any process can claim that. A transport
    /// may choose its offer by the claim, but must not trust it.
    pub same_process: bool,
    /// Whether its process answers challenges. Such a peer can prove that packets reach it at an
    /// address other than its connection's (rule C13).
    pub proves: bool,
    /// Our end of the control connection, an address at which the peer reaches this host; `None` if
    /// the connection is a UNIX socket.
    pub local: Option<SocketAddr>,
    /// The other end of the control connection; `None` if the connection is a UNIX socket, which
    /// means that the peer is on this host.
    pub remote: Option<IpAddr>,
}

impl PeerInfo {
    /// An endpoint of another process of this host, whose connection is a UNIX socket.
    pub const fn of_this_host(endpoint: EndpointUid) -> Self {
        Self {
            endpoint,
            same_host: true,
            same_process: false,
            proves: true,
            local: None,
            remote: None,
        }
    }

    /// Whether the peer connects from this address, or from this host if `is_here` finds that the
    /// address belongs to this host (rule C12).
    pub(crate) fn has(&self, ip: IpAddr, is_here: impl FnOnce(IpAddr) -> bool) -> bool {
        match self.remote {
            Some(remote) => remote.to_canonical() == ip.to_canonical(),
            None => self.same_host && is_here(ip),
        }
    }
}

/// The number of an offer that waits for its answer, which only the offering transport understands.
///
/// Pass it to [`Connect::complete`] or [`Connect::abandon`]. If it is lost, the peer's resources
/// stay until the endpoint closes.
#[derive(PartialEq, Eq, Hash, Debug)]
#[must_use = "an offer must be completed or abandoned"]
pub struct Pending(pub u64);

/// Whether an endpoint may sleep, as [`Connect::arm`] has found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arm {
    /// No packet has come. Packets from now on make a descriptor of [`Connect::fds`] readable.
    Wait,
    /// Packets may already be here: do not block, call [`Connect::disarm`] and poll.
    Ready,
}

/// Why two endpoints could not be connected.
#[derive(Debug)]
pub enum ConnectError {
    /// The transport cannot reach this peer, for example shared memory on another host.
    Unreachable,
    /// The bytes are not an offer of this transport.
    Malformed,
    /// This endpoint does not accept the peer's sizes.
    Sizes,
    /// A descriptor is missing, of the wrong kind, of the wrong size, or not sealed.
    Descriptor,
    /// The peer wants packets at an address that is not its own and that the operator has not
    /// allowed (rule C12).
    ForeignAddress,
    /// The offer refers to a channel that no longer exists; a new offer will make another.
    Gone,
    /// There are as many peers as the endpoint's options allow.
    TooManyPeers,
    /// The kernel refused.
    Os(io::Error),
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable => f.write_str("this transport does not reach the peer"),
            Self::Malformed => f.write_str("the offer is malformed"),
            Self::Sizes => f.write_str("the peer's sizes are outside the limits of this endpoint"),
            Self::Descriptor => f.write_str("a descriptor of the offer is unusable"),
            Self::ForeignAddress => f.write_str(
                "the peer's packets would go to an address that is neither its own nor allowed",
            ),
            Self::Gone => f.write_str("the offered channel is gone"),
            Self::TooManyPeers => f.write_str("the endpoint has too many peers"),
            Self::Os(error) => write!(f, "the operating system refused: {error}"),
        }
    }
}

impl std::error::Error for ConnectError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Os(error) => Some(error),
            _ => None,
        }
    }
}

impl From<io::Error> for ConnectError {
    fn from(error: io::Error) -> Self {
        Self::Os(error)
    }
}

/// A transport whose peers meet by offers through the control plane.
pub trait Connect: Transport {
    /// The kind of its offers, from the table of [`TransportKind`]; 0, which is not a kind, if its
    /// offers have parts of several kinds.
    const KIND: u8 = 0;

    /// Names of the counters that only this transport has, such as causes of drops.
    const DETAILS: &'static [&'static str] = &[];

    /// Makes an offer to `peer`. The client's first step.
    ///
    /// # Errors
    /// `Unreachable`, `TooManyPeers`, `Os`.
    fn offer(
        rx: &mut Self::Rx,
        tx: &mut Self::Tx,
        peer: &PeerInfo,
    ) -> Result<(Pending, Offer), ConnectError>;

    /// Takes an offer and answers it. The server's step. If the offer asks for it, the answer
    /// reuses the channel that this pair of endpoints already has. Adds one use of the peer.
    ///
    /// # Errors
    /// Any; the transport is then unchanged.
    fn accept(
        rx: &mut Self::Rx,
        tx: &mut Self::Tx,
        peer: &PeerInfo,
        offer: Offer,
    ) -> Result<(PeerId, Offer), ConnectError>;

    /// Takes the answer, after which packets can flow. The client's last step. Adds one use of the
    /// peer.
    ///
    /// # Errors
    /// `Malformed`, `Sizes`, `Descriptor`, `Gone`, `Os`; the offer is then abandoned.
    fn complete(
        rx: &mut Self::Rx,
        tx: &mut Self::Tx,
        pending: Pending,
        answer: Offer,
    ) -> Result<PeerId, ConnectError>;

    /// The parts of an offer or an answer of this transport, by kind, best first.
    fn parts(offer: Offer) -> Vec<(TransportKind, Offer)> {
        vec![(TransportKind(Self::KIND), offer)]
    }

    /// Joins the parts of an offer that this transport understands into one offer.
    ///
    /// # Errors
    /// `Unreachable` if it knows none of the kinds, `Sizes` if the parts are too long.
    fn whole(parts: Vec<(TransportKind, Offer)>) -> Result<Offer, ConnectError> {
        of_kind(Self::KIND, parts).ok_or(ConnectError::Unreachable)
    }

    /// The most data bytes in a packet to and from this peer, if that is less than the limit of the
    /// endpoint. Both sides compute the same number.
    fn data_size(_rx: &Self::Rx, _tx: &Self::Tx, _peer: PeerId) -> u32 {
        u32::MAX
    }

    /// Whether packets to this peer go to an address other than its connection's. If so, before a
    /// session opens, the peer must prove that packets reach it there (rule C13).
    fn must_prove(_rx: &Self::Rx, _tx: &Self::Tx, _peer: PeerId) -> bool {
        false
    }

    /// Gives up an offer that was refused or not answered.
    fn abandon(rx: &mut Self::Rx, tx: &mut Self::Tx, pending: Pending);

    /// Removes one use of this peer. Removing the last one frees its resources.
    fn release(rx: &mut Self::Rx, tx: &mut Self::Tx, peer: PeerId);

    /// Removes a dead peer and frees its resources immediately, even if packets still name it.
    /// Frames of the current burst stay valid.
    fn remove(rx: &mut Self::Rx, tx: &mut Self::Tx, peer: PeerId);

    /// Appends the descriptors on which to wait for readability; they stay the same for the life of
    /// the endpoint.
    fn fds(rx: &Self::Rx, tx: &Self::Tx, out: &mut Vec<RawFd>);

    /// The minimum time for which an endpoint that has had packets polls before it blocks. It must
    /// be longer than the transport needs to wake the endpoint; most need only microseconds.
    fn least_spin(_rx: &Self::Rx) -> Duration {
        Duration::ZERO
    }

    /// Prepares to block on [`Connect::fds`].
    fn arm(rx: &mut Self::Rx, tx: &mut Self::Tx) -> Arm;

    /// Notes that the thread is awake again. Call this after every `arm`, whatever that returned.
    fn disarm(rx: &mut Self::Rx, tx: &mut Self::Tx);

    /// Takes the reason why a peer of this host is not reached over shared memory, if this has
    /// happened for the first time. Only a transport that chooses between two has such a reason.
    fn take_fallback(_tx: &mut Self::Tx) -> Option<ConnectError> {
        None
    }

    /// The counters of both halves since the endpoint was opened.
    fn counters(rx: &Self::Rx, tx: &Self::Tx) -> Counters;

    /// Shows the counters of [`Connect::DETAILS`] with their names. It allocates nothing.
    fn details(_rx: &Self::Rx, _tx: &Self::Tx, _show: &mut dyn FnMut(&'static str, u64)) {}
}

/// Connects two endpoints whose halves belong to one thread, without a control plane. `infos`
/// describe the first endpoint and the second, each as the other one knows it. Returns the first
/// endpoint's number for the second, and the second's for the first.
///
/// ```
/// use dunlin_core::transport::PeerId;
/// use dunlin_transport::connect::{EndpointUid, PeerInfo, meet};
/// use dunlin_transport::shm::{Options, Shm};
///
/// let (mut near, mut far) = (Shm::open(Options::default())?, Shm::open(Options::default())?);
/// let infos = [1, 2].map(|uid| PeerInfo::of_this_host(EndpointUid([uid; 16])));
/// let [to_far, to_near]: [PeerId; 2] = meet::<Shm>([&mut near, &mut far], &infos)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// The first error of the three steps; neither endpoint then knows the other.
pub fn meet<T: Connect>(
    [near, far]: [&mut Halves<T::Rx, T::Tx>; 2],
    infos: &[PeerInfo; 2],
) -> Result<[PeerId; 2], ConnectError> {
    let (pending, offer) = T::offer(&mut near.rx, &mut near.tx, &infos[1])?;
    let (to_near, answer) = match T::accept(&mut far.rx, &mut far.tx, &infos[0], offer) {
        Ok(accepted) => accepted,
        Err(why) => {
            T::abandon(&mut near.rx, &mut near.tx, pending);
            return Err(why);
        }
    };
    match T::complete(&mut near.rx, &mut near.tx, pending, answer) {
        Ok(to_far) => Ok([to_far, to_near]),
        Err(why) => {
            T::release(&mut far.rx, &mut far.tx, to_near);
            Err(why)
        }
    }
}

/// The first offer of this kind.
fn of_kind(kind: u8, parts: Vec<(TransportKind, Offer)>) -> Option<Offer> {
    let mut of_kind = parts.into_iter().filter(|(it, _)| it.0 == kind);
    of_kind.next().map(|(_, offer)| offer)
}
