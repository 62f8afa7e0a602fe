//! One open session and a context, for tests of parts that have no endpoint.

use dunlin_wire::{ReqNum, SessionNum, Token};

use crate::config::Config;
use crate::context::Context;
use crate::handle::{EndpointNum, Session};
use crate::session::lifecycle::SessionOffer;
use crate::session::table::Sessions;
use crate::session::terms::Terms;
use crate::time::Nanos;
use crate::transport::{Limits, PeerId};

/// Terms of a session; tests change the fields that matter to them.
pub(crate) const TERMS: Terms = Terms {
    peer: PeerId(0),
    window: 4,
    data_size: 1024,
    max_message: 8192,
    credits: 8,
    first_req: ReqNum(64),
};

/// A table of sessions with one that is open.
pub(crate) fn open_session(terms: &Terms) -> (Sessions, Session) {
    let answer = SessionOffer {
        session: SessionNum(1),
        token: Token(2),
        window: terms.window,
        credits: terms.credits,
        data_size: terms.data_size,
        max_message: terms.max_message,
        first_req: terms.first_req,
        keeps_code_rules: true,
    };
    let mut sessions = Sessions::new(1, 1, EndpointNum::chosen(1));
    let index = sessions.begin(terms, false, None).expect("room");
    let session = sessions.handle(index);
    let narrows = sessions.complete(session, terms.peer, &answer, Nanos(1));
    assert_eq!(narrows, Ok(false));
    (sessions, session)
}

/// A context whose packets have this many data bytes.
pub(crate) fn context(data_size: u32) -> Context {
    let limits = Limits {
        data_size,
        rx_queue: 4096,
        line_rate: 1_000_000_000,
    };
    Context::new(Config::default(), limits, 1, Nanos(1)).expect("memory")
}
