//! The input and output of the control plane: identities, commands of endpoints, events for them,
//! and actions for the code that moves the bytes.

use std::cmp::Ordering;
use std::fmt;
use std::net::{IpAddr, SocketAddr};

use dunlin_core::{Account, CloseReason, Nanos, Session, SessionOffer};
use dunlin_wire::control::{
    BootId, EndpointIndex, EndpointUid, Fate, Features, Hello, Incarnation, RefuseCode, Serving,
    SessionRef, TransportKind,
};
use dunlin_wire::{ReqNum, SessionNum, Token, VERSION};

/// One connection to a remote nexus: a TCP or UNIX stream, or one in the simulator. Never reused.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LinkId(pub u64);

/// A request for a session that an endpoint must answer. Never reused.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ConnectTicket(pub u64);

/// Names a session at this side, over all endpoints of the process. The token distinguishes a
/// session from an earlier one with the same number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SessionKey {
    /// The endpoint of the session.
    pub endpoint: EndpointIndex,
    /// The endpoint's number for it.
    pub session: SessionNum,
    /// The endpoint's token for it.
    pub token: Token,
}

impl SessionKey {
    /// The session as its peer names it in messages to us.
    pub const fn as_ref(&self) -> SessionRef {
        SessionRef {
            session: self.session,
            token: self.token,
        }
    }

    const fn in_order(&self) -> (u16, u32, u32) {
        (self.endpoint.0, self.session.0, self.token.0)
    }
}

impl Ord for SessionKey {
    fn cmp(&self, other: &Self) -> Ordering {
        self.in_order().cmp(&other.in_order())
    }
}

impl PartialOrd for SessionKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The content of this process's Hello (rule C2).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Identity {
    /// This boot of this host.
    pub boot_id: BootId,
    /// This start of this process.
    pub incarnation: Incarnation,
    /// The port at which the process listens.
    pub port: u16,
    /// The name of its UNIX socket; empty if it has none. A first NUL means the abstract namespace.
    pub unix_name: String,
}

impl Identity {
    /// Hello for a process of another host. It contains neither the boot id nor the UNIX socket,
    /// with which that process could lead other processes of this host to this one (rule C3).
    pub(super) fn hello_elsewhere(&self) -> Hello<'_> {
        Hello {
            boot_id: BootId::default(),
            unix_name: "",
            ..self.hello()
        }
    }

    pub(super) fn hello(&self) -> Hello<'_> {
        Hello {
            min_version: VERSION,
            max_version: VERSION,
            features: Features::INQUIRY
                .and(Features::FOREIGN)
                .and(Features::NONCE)
                .and(Features::PROOF)
                .and(Features::CODES)
                .and(Features::SERVING)
                .and(Features::HEALTH),
            boot_id: self.boot_id,
            incarnation: self.incarnation,
            port: self.port,
            unix_name: &self.unix_name,
        }
    }
}

/// The endpoint at the other side, with the facts that transports need.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PeerIdentity {
    /// The endpoint.
    pub endpoint: EndpointUid,
    /// The endpoint's process.
    pub incarnation: Incarnation,
    /// The endpoint runs on this host, and the link carries descriptors.
    pub same_host: bool,
    /// The endpoint belongs to this very process.
    pub same_process: bool,
    /// The endpoint's process answers challenges (rule C13).
    pub proves: bool,
    /// Our end of the link: an address at which the other side reaches this host. A UNIX stream and
    /// a simulated one have none.
    pub local: Option<SocketAddr>,
    /// The other end of the link, which is an address of the other side's host or of its router. A
    /// UNIX stream and a simulated one have none.
    pub remote: Option<IpAddr>,
    /// The address at which its nexus listens, if this side knows it; readers of this process's
    /// memory file see it. For a process that connected to this one, it is the address of the
    /// connection with the port that the process has announced.
    pub nexus: Option<SocketAddr>,
    /// Its index there, if this side has looked it up, or if this is an endpoint of this process.
    pub index: Option<EndpointIndex>,
}

/// A session whose peer must prove an address (rule C13).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Proving {
    /// The peer has asked for the session.
    Asked {
        /// The endpoint that was asked.
        endpoint: EndpointIndex,
        /// The request.
        ticket: ConnectTicket,
    },
    /// The peer has granted the session.
    Granted(SessionKey),
}

impl Proving {
    /// The endpoint that wants the proof.
    pub(super) const fn endpoint(&self) -> EndpointIndex {
        match self {
            Self::Asked { endpoint, .. } => *endpoint,
            Self::Granted(key) => key.endpoint,
        }
    }
}

/// One side's offer for one transport, over which the peer can reach that side.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TransportOffer<F> {
    /// The transport that understands the offer.
    pub kind: TransportKind,
    /// Bytes that only the transport reads.
    pub bytes: Vec<u8>,
    /// Descriptors that accompany the bytes.
    pub fds: Vec<F>,
}

/// The ways to reach one side, best first.
pub type TransportOffers<F> = Vec<TransportOffer<F>>;

/// One side of a session that is being opened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Side<F> {
    /// The session's numbers at that side.
    pub offer: SessionOffer,
    /// The ways to reach that side.
    pub transports: TransportOffers<F>,
}

/// A command of an endpoint for the plane.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Command<F> {
    /// Open a session with an endpoint of the nexus at one of these addresses. Answered by
    /// [`Event::Found`] any number of times, then by one `Accepted` or `ConnectFailed`.
    Connect {
        /// The session at this side, which is connecting.
        key: SessionKey,
        /// Addresses of the same nexus; they are tried in turn.
        to: Vec<SocketAddr>,
        /// The endpoint there.
        target: EndpointIndex,
        /// When to give up.
        deadline: Nanos,
    },
    /// Answers [`Event::Found`].
    Offer {
        /// The session at this side.
        key: SessionKey,
        /// The connection that `Found` named; if it is gone, the offer is void.
        via: LinkId,
        /// This side.
        side: Side<F>,
    },
    /// The session is no longer wanted, or cannot be opened. If it has been granted, it is
    /// disconnected.
    Abandon {
        /// The session at this side.
        key: SessionKey,
    },
    /// Answers [`Event::Incoming`].
    Accept {
        /// The request.
        ticket: ConnectTicket,
        /// The session at this side, which is open.
        key: SessionKey,
        /// This side.
        side: Side<F>,
    },
    /// Answers [`Event::Incoming`].
    Refuse {
        /// The request.
        ticket: ConnectTicket,
        /// The reason.
        code: RefuseCode,
    },
    /// An open session has ended at this side.
    Disconnect {
        /// The session at this side.
        key: SessionKey,
        /// The reason for the peer: an orderly end differs from a failure.
        reason: CloseReason,
    },
    /// Ask the peer for the fates of requests. Answered by [`Event::Account`], unless the session
    /// ends first.
    Inquire {
        /// The session at this side.
        key: SessionKey,
        /// The session's unanswered requests.
        requests: Vec<ReqNum>,
    },
    /// Answers [`Event::Inquired`].
    Account {
        /// The session at this side.
        key: SessionKey,
        /// The requests of the inquiry.
        fates: Vec<(ReqNum, Fate)>,
    },
    /// Make the peer of a session prove its address. Answered by [`Event::Challenge`], up to three
    /// times, and then by [`Event::Proven`], unless a granted session ends first.
    Challenge {
        /// The session that waits for the proof.
        proving: Proving,
    },
    /// Return the bytes of a challenge that has come for a session.
    Prove {
        /// The session at this side.
        key: SessionKey,
        /// The bytes of the challenge.
        secret: u64,
    },
}

/// An event that the plane gives to an endpoint.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event<F> {
    /// The wanted endpoint exists: make an offer for it.
    Found {
        /// The session at this side.
        key: SessionKey,
        /// The connection; the endpoint returns it with its offer.
        via: LinkId,
        /// The endpoint that was found.
        peer: PeerIdentity,
    },
    /// The offer that the endpoint made after `Found` is void: release its resources. Another
    /// `Found` may come.
    OfferVoid {
        /// The session at this side.
        key: SessionKey,
        /// The connection is gone: the other side may have granted the session, and may have sent
        /// packets with its token.
        lost: bool,
    },
    /// The session was granted.
    Accepted {
        /// The session at this side.
        key: SessionKey,
        /// The other side.
        side: Side<F>,
    },
    /// The session cannot be opened: release the resources of its offer.
    ConnectFailed {
        /// The session at this side.
        key: SessionKey,
        /// Why.
        failure: ConnectFailure,
    },
    /// A peer wants a session with this endpoint.
    Incoming {
        /// The request; the endpoint returns it with its answer.
        ticket: ConnectTicket,
        /// The endpoint that asks.
        peer: PeerIdentity,
        /// The side that asks.
        side: Side<F>,
    },
    /// An open session has ended.
    Closed {
        /// The session at this side.
        key: SessionKey,
        /// Why.
        reason: CloseReason,
    },
    /// The peer asks for the fates of its requests.
    Inquired {
        /// The session at this side.
        key: SessionKey,
        /// The other side's requests.
        requests: Vec<ReqNum>,
    },
    /// The fates of the requests about which the endpoint has asked.
    Account {
        /// The session at this side.
        key: SessionKey,
        /// The peer's answer.
        account: Account,
    },
    /// Send a challenge.
    Challenge {
        /// The session that waits for the proof.
        proving: Proving,
        /// The bytes of the challenge.
        secret: u64,
    },
    /// The peer has proven its address, or has not done so in time.
    Proven {
        /// The session that waits for the proof.
        proving: Proving,
        /// Packets reach the peer at its address.
        proven: bool,
    },
    /// The services of the peer's process. Comes right after [`Event::Found`], even if the endpoint
    /// that was found does not answer, and after each change. Processes that announce nothing, such
    /// as those of earlier releases, cause no such event.
    Serving {
        /// The session at this side.
        key: SessionKey,
        /// The process of the peer.
        process: Incarnation,
        /// The services of the process.
        serving: Serving,
    },
}

/// Why a session could not be opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ConnectFailure {
    /// The server declined.
    Refused(RefuseCode),
    /// The deadline passed before any nexus could be reached.
    Unreachable,
    /// The deadline passed; a nexus was there, but no endpoint accepted. Holds its last refusal.
    TimedOut(Option<RefuseCode>),
    /// The deadline passed; the last message of the other process reported too many connections.
    Full,
    /// This process already has as many attempts or routes as its limits allow.
    TooMany,
}

impl ConnectFailure {
    /// The reason with which the session closes.
    pub(super) const fn close_reason(self) -> CloseReason {
        match self {
            Self::Refused(_) | Self::TooMany => CloseReason::Refused,
            Self::Unreachable | Self::TimedOut(_) | Self::Full => CloseReason::ConnectTimeout,
        }
    }
}

/// A session that could not be opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FailedConnect {
    /// The session, which has ended.
    pub session: Session,
    /// The address of the server, or the first of several; `None`: there was none.
    pub address: Option<SocketAddr>,
    /// The reason.
    pub failure: ConnectFailure,
}

impl fmt::Display for FailedConnect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.address {
            Some(address) => write!(f, "{address}: {}", self.failure),
            None => self.failure.fmt(f),
        }
    }
}

impl std::error::Error for FailedConnect {}

impl fmt::Display for ConnectFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(code) => write!(f, "the server refused the session: {code}"),
            Self::Unreachable => f.write_str(
                "no server could be reached before the deadline; is it running at this address?",
            ),
            Self::TimedOut(Some(code)) => {
                write!(
                    f,
                    "the server did not accept before the deadline; its last answer: {code}"
                )
            }
            Self::TimedOut(None) => f.write_str("the server did not answer before the deadline"),
            Self::Full => f.write_str(
                "the server has as many connections as it takes, or as this host may have there; \
                 raise `nexus.max_links` and the limit of open files of the server",
            ),
            Self::TooMany => f.write_str("this process has too many attempts to connect under way"),
        }
    }
}

impl std::error::Error for ConnectFailure {}

/// The address that a link must dial.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Target {
    /// A TCP listener.
    Tcp(SocketAddr),
    /// A UNIX listener of the same user on this host, with the name from Hello.
    Unix(String),
}

/// An action on sockets, which the plane's owner carries out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Action<F> {
    /// Begin to connect; report `on_dialled` or `on_closed`.
    Dial {
        /// The new connection's name.
        link: LinkId,
        /// The target.
        to: Target,
    },
    /// Send one frame and, with its first byte, descriptors.
    Send {
        /// The connection.
        link: LinkId,
        /// A whole frame.
        frame: Vec<u8>,
        /// Descriptors; only for links that carry them.
        fds: Vec<F>,
    },
    /// Close the connection, after the frames before this action if they can be sent without
    /// waiting. The owner reports no more events about the connection.
    Close {
        /// The connection.
        link: LinkId,
    },
    /// The other side asks for a part of this process's memory file: answer with
    /// [`Plane::show`](super::Plane::show), without bytes if the process hides its counters.
    Show {
        /// The connection.
        link: LinkId,
        /// The offset at which the part begins.
        offset: u64,
        /// The most bytes of the part.
        len: u16,
    },
    /// Give an event to an endpoint.
    Tell {
        /// The endpoint.
        endpoint: EndpointIndex,
        /// The event.
        event: Event<F>,
    },
}
