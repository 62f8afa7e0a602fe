//! The work of the servers in these tests. They count the requests that they run and the resources
//! that they hold, so that a client can ask whether a request ran twice or a resource leaked.

use std::collections::HashSet;
use std::net::SocketAddr;

use dunlin::{DeferredRequest, ErrorCode, Nexus, ReqType, Rpc, SessionEvent};

use crate::end_to_end::Named;
use crate::end_to_end::process::say;

/// Records a number of 8 bytes, and answers with a function of it.
pub(crate) const MARK: ReqType = ReqType(1);
/// Answers with the request's bytes.
pub(crate) const ECHO: ReqType = ReqType(2);
/// Answers with the request's bytes, from a worker thread.
pub(crate) const BACKGROUND: ReqType = ReqType(3);
/// A request that is never answered while the session lives.
pub(crate) const HOLD: ReqType = ReqType(4);
/// A request that makes the server end the session.
pub(crate) const LEAVE: ReqType = ReqType(5);
/// Answers with the server's [`Stats`].
pub(crate) const STATS: ReqType = ReqType(6);

/// Counts of a server.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Stats {
    /// Numbers that were recorded.
    pub(crate) marked: u64,
    /// Numbers that were recorded more than once.
    pub(crate) twice: u64,
    /// Live sessions.
    pub(crate) sessions: u64,
    /// Msgbufs in use.
    pub(crate) bufs: u64,
    /// Packets dropped by the endpoint.
    pub(crate) drops: u64,
}

/// The answer to a MARK of this number.
pub(crate) fn answer_to(mark: u64) -> u64 {
    mark.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0xD
}

impl Stats {
    /// Bytes of an answer.
    pub(crate) const BYTES: usize = 40;

    fn encode(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        let numbers = [
            self.marked,
            self.twice,
            self.sessions,
            self.bufs,
            self.drops,
        ];
        for (place, number) in bytes.chunks_exact_mut(8).zip(numbers) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> Self {
        assert_eq!(bytes.len(), Self::BYTES);
        let number = |index: usize| {
            let bytes = &bytes[8 * index..8 * index + 8];
            u64::from_le_bytes(bytes.try_into().unwrap())
        };
        Self {
            marked: number(0),
            twice: number(1),
            sessions: number(2),
            bufs: number(3),
            drops: number(4),
        }
    }
}

#[derive(Default)]
struct App {
    seen: HashSet<u64>,
    held: Vec<DeferredRequest>,
    events: Vec<SessionEvent>,
    stats: Stats,
}

/// Serves forever, and reports on standard output which sessions come and go.
pub(crate) fn serve<T: Named>(address: SocketAddr, udp_port: u16) {
    let nexus = Nexus::builder().bind(address).unwrap();
    let mut rpc = nexus
        .endpoint_builder::<T>()
        .transport(|options| T::set_udp_port(options, udp_port))
        .build(App::default())
        .unwrap();
    register(&mut rpc);
    say(&format!("address {}", nexus.address()));
    loop {
        rpc.run_once();
        on_events(&mut rpc);
        let (sessions, bufs) = (rpc.session_count(), rpc.pool_use().1);
        let drops = rpc.counters().drops.total();
        let stats = &mut rpc.app_mut().stats;
        (stats.sessions, stats.bufs) = (sessions as u64, bufs as u64);
        stats.drops = drops;
    }
}

fn register<T: Named>(rpc: &mut Rpc<T, App>) {
    rpc.on(MARK, |app, request, cx| {
        let Ok(bytes) = request.data().try_into() else {
            return request.reject(cx, ErrorCode::application(1));
        };
        let mark = u64::from_le_bytes(bytes);
        app.stats.marked += 1;
        app.stats.twice += u64::from(!app.seen.insert(mark));
        request.reply_bytes(cx, &answer_to(mark).to_le_bytes());
    });
    rpc.on(ECHO, |_, request, cx| {
        let data = request.data();
        request.reply_bytes(cx, data);
    });
    rpc.on_background(BACKGROUND, 64, |request| {
        let length = request.data().len();
        let _ = request.reply(length, |data, out| out.copy_from_slice(data));
    });
    rpc.on(HOLD, |app, request, cx| app.held.push(request.defer(cx)));
    rpc.on(LEAVE, |_, request, cx| {
        cx.disconnect(request.session()).expect("it lives");
    });
    rpc.on(STATS, |app, request, cx| {
        let stats = app.stats.encode();
        request.reply_bytes(cx, &stats);
    });
    rpc.on_session(|app, event, _| app.events.push(event));
}

/// Drops the held requests of sessions that have ended, and reports the events.
fn on_events<T: Named>(rpc: &mut Rpc<T, App>) {
    for event in std::mem::take(&mut rpc.app_mut().events) {
        match event {
            SessionEvent::Accepted(_) => say("accepted"),
            SessionEvent::Connected(_) => {}
            SessionEvent::Closed { reason, .. } => {
                say(&format!("closed {reason:?}"));
                let (app, cx) = rpc.with();
                app.held.retain(|held| !held.is_cancelled(&cx));
            }
        }
    }
}
