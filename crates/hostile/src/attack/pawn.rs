//! A client that the drills kill or stop at some moment while it connects or calls. It complains if
//! a call does not end in time, or if it gets no session.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use dunlin_core::{CallOptions, Done, Session, Tag};
use dunlin_nexus::{ConnectOptions, Nexus, Open, Rpc};
use dunlin_transport::shm::Shm;
use dunlin_transport::udp::Udp;
use harness::process::{Parent, Role};
use serde::{Deserialize, Serialize};

use crate::honest::{OTHER, is_answer};

pub(crate) const ROLE: Role = Role::new("pawn", run);

/// Longest time of a call. If the server is gone, a call ends within the failure timeout of one
/// second; if the server was stopped, the session ends within it. The rest allows for a busy
/// machine.
const LIMIT: Duration = Duration::from_secs(4);
/// Time within which a killed server is replaced.
const CONNECT: Duration = Duration::from_secs(15);
/// Sizes of requests, which take turns.
const SIZES: [usize; 5] = [16, 16, 16, 1_500, 70_000];

/// The parameters of a pawn.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) server: SocketAddr,
    pub(crate) shares_memory: bool,
}

/// A report of a pawn.
#[derive(PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) enum Word {
    /// Its first call was answered.
    Works,
    /// A fault.
    Complaint(String),
}

fn run(parent: &Parent) -> anyhow::Result<()> {
    let Order {
        server,
        shares_memory,
    } = parent.receive()?;
    match shares_memory {
        true => play::<Shm>(parent, server),
        false => play::<Udp>(parent, server),
    }
}

fn play<T: Open>(parent: &Parent, server: SocketAddr) -> anyhow::Result<()> {
    let nexus = Nexus::bind("127.0.0.1:0")?;
    let mut rpc: Rpc<T, Vec<Done>> = nexus.endpoint(Vec::new())?;
    rpc.on_completion(|ends: &mut Vec<Done>, done, _| ends.push(done));
    let complain = |what: String| parent.say(&Word::Complaint(what));
    let (mut session, mut works) = (None, false);
    for turn in 0_usize.. {
        let open = session.filter(|session| rpc.session_info(*session).is_ok());
        let open = match open {
            Some(open) => open,
            None => match connect(&mut rpc, server) {
                Ok(new) => new,
                Err(error) => {
                    complain(format!("no session in {CONNECT:?}: {error:#}"))?;
                    continue;
                }
            },
        };
        session = Some(open);
        let len = SIZES[turn % SIZES.len()];
        let request = vec![turn.to_le_bytes()[0]; len];
        let (bytes, response) = (rpc.cx().copy(&request)?, rpc.buf(len)?);
        let options = CallOptions::default();
        let begun = Instant::now();
        if rpc
            .call_with(open, OTHER, bytes, response, Tag(0), options)
            .is_err()
        {
            continue;
        }
        // Runs in slices of time, because a call that never ends does not wake the event loop.
        while rpc.app().is_empty() && begun.elapsed() < 2 * LIMIT {
            rpc.run_for(Duration::from_millis(1));
        }
        let took = begun.elapsed();
        if took > LIMIT {
            complain(format!("a call of {len} bytes took {took:?}"))?;
        }
        if let Some(done) = rpc.app_mut().pop()
            && done.result.is_ok()
        {
            if !is_answer(&request, done.response.data()) {
                complain(format!("a wrong answer of {len} bytes"))?;
            }
            if !std::mem::replace(&mut works, true) {
                parent.say(&Word::Works)?;
            }
        }
    }
    Ok(())
}

fn connect<T: Open>(rpc: &mut Rpc<T, Vec<Done>>, server: SocketAddr) -> anyhow::Result<Session> {
    let options = ConnectOptions {
        patience: CONNECT,
        ..ConnectOptions::default()
    };
    let session = rpc.connect_with(server, &options)?;
    rpc.wait_connected(session)?;
    Ok(session)
}
