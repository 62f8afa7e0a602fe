//! Translates between the types of the control plane and of the transports: identities of peers,
//! offers, and reasons for refusal. No I/O; called by `handshakes.rs` and `rpc.rs`.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use dunlin_control::{PeerIdentity, TransportOffer, TransportOffers};
use dunlin_insight::Whereabouts;
use dunlin_transport::connect::{ConnectError, Offer, PeerInfo};
use dunlin_wire::control::{EndpointIndex, RefuseCode};

use crate::transports::Open;

/// The other endpoint, in the form for transports.
pub(super) fn info_of(peer: &PeerIdentity) -> PeerInfo {
    PeerInfo {
        endpoint: peer.endpoint,
        same_host: peer.same_host,
        same_process: peer.same_process,
        proves: peer.proves,
        local: peer.local,
        remote: peer.remote,
    }
}

/// The place of the other endpoint, for a reader of this process's counters.
pub(super) fn place_of((nexus, index): (Option<SocketAddr>, Option<EndpointIndex>)) -> Whereabouts {
    Whereabouts {
        nexus,
        endpoint: index.map(|index| index.0),
    }
}

/// A transport's offer or answer, in the form for messages.
pub(super) fn wrapped<T: Open>(offer: Offer) -> TransportOffers<OwnedFd> {
    let parts = T::parts(offer).into_iter();
    let wrapped = parts.map(|(kind, Offer { bytes, fds })| TransportOffer { kind, bytes, fds });
    wrapped.collect()
}

/// Extracts the parts of an offer, or of an answer, that this transport can read.
///
/// # Errors
/// `Unreachable` if the transport can read no part of the offer, `Sizes` if the offer is too long.
pub(super) fn unwrapped<T: Open>(
    transports: TransportOffers<OwnedFd>,
) -> Result<Offer, ConnectError> {
    let parts = transports.into_iter();
    let parts = parts.map(|TransportOffer { kind, bytes, fds }| (kind, Offer { bytes, fds }));
    T::whole(parts.collect())
}

/// The code that the other side, or the user, gets for a transport's error.
pub(super) fn code_of(error: &ConnectError) -> RefuseCode {
    match error {
        ConnectError::Unreachable => RefuseCode::NoCommonTransport,
        ConnectError::ForeignAddress => RefuseCode::ForeignAddress,
        ConnectError::TooManyPeers => RefuseCode::TooManySessions,
        ConnectError::Gone | ConnectError::Os(_) => RefuseCode::Busy,
        _ => RefuseCode::BadParameters,
    }
}
