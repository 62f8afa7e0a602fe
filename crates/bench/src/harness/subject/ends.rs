//! Settings of a client and a server, each on its own processor, and at the ends of a link if their
//! transport needs one.

use super::Setting;
#[cfg(feature = "full")]
use crate::harness::link::{self, Kind};
use crate::harness::transport::Transport;
use harness::seat::Seats;

/// Settings of a client and a server that spin, each on its own processor.
pub(crate) fn spinning_pair(transport: Transport) -> (Setting, Setting) {
    let seats = Seats::pick();
    let on = |seat| Setting::spinning(transport, seat);
    (on(seats.client), on(seats.server))
}

/// Like [`spinning_pair`], but at the two ends of a link if the transport needs one.
///
/// # Errors
/// There is no link, and this process may not make one.
pub(crate) fn linked_pair(transport: Transport) -> anyhow::Result<(Setting, Setting)> {
    linked(transport, spinning_pair(transport))
}

/// The same settings, at the two ends of a link if the transport needs one.
///
/// # Errors
/// As [`linked_pair`].
pub(crate) fn linked(
    transport: Transport,
    pair: (Setting, Setting),
) -> anyhow::Result<(Setting, Setting)> {
    #[cfg(feature = "full")]
    if let Some(kind) = transport.link() {
        return at_link(pair, kind);
    }
    let _ = transport;
    Ok(pair)
}

/// Settings at the two ends of a link.
///
/// # Errors
/// There is no link, and this process may not make one.
#[cfg(feature = "full")]
pub(crate) fn at_link(
    (client, server): (Setting, Setting),
    kind: Kind,
) -> anyhow::Result<(Setting, Setting)> {
    let [near, far] = link::ends(kind)?.map(Some);
    let at = |setting, end| Setting { end, ..setting };
    Ok((at(client, near), at(server, far)))
}
