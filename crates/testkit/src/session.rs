//! Sessions between two endpoints of one thread, without a control plane.

use dunlin_core::transport::{PeerId, Transport};
use dunlin_core::{Clock, Endpoint, Session, SessionOptions};

/// Options of a session with `window` slots and `credits` credits.
pub const fn options(window: u32, credits: u32) -> SessionOptions {
    SessionOptions::DEFAULT
        .with_window(window)
        .with_credits(credits)
}

/// Opens a session from `client` to `server`. `peers` are the client's number for the server and
/// the server's number for the client. Returns the client's and the server's handle of the session.
///
/// # Panics
/// If one of them refuses.
pub fn connect<T: Transport, U: Transport, C: Clock, A, B>(
    client: &mut Endpoint<T, C, A>,
    server: &mut Endpoint<U, C, B>,
    peers: [PeerId; 2],
    options: &SessionOptions,
) -> [Session; 2] {
    let mut near = client.lifecycle();
    let session = near.open(options).expect("there is room");
    let offer = near.offer_of(session).expect("it is opening");
    let accepted = server.lifecycle().accept(peers[1], &offer);
    let (back, answer) = accepted.expect("a good offer");
    near.opened(session, peers[0], &answer)
        .expect("a good answer");
    [session, back]
}
