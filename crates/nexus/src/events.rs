//! Events of the control plane for programs with a `tracing` subscriber: other processes that come
//! and go, attempts to connect, sessions, refusals, malformed messages, panics of handlers. The
//! data path has no events; without a subscriber, an event costs one load.
//!
//! Called by the control thread with every command, frame and action, and by endpoints when they
//! publish their counters. Levels: error, a handler of the program panicked; warn, an operator
//! should act; info, sessions and processes; debug, the rest.

use std::os::fd::OwnedFd;
use std::time::Duration;

use dunlin_control::{Action, Command, Event, LinkId, SessionKey, Target, WrongStage};
use dunlin_core::{Account, CloseReason};
use dunlin_transport::connect::ConnectError;
use dunlin_wire::control::{GoodbyeReason, Message};
use tracing::{Level, debug, enabled, error, info, warn};

/// The plane and an endpoint disagree about a session, which is a bug of the library.
pub(crate) fn on_wrong_stage(wrong: &WrongStage) {
    error!(endpoint = wrong.key.endpoint.0, "{wrong}");
}

/// Logs why an endpoint reaches a process of this host over UDP.
pub(crate) fn on_fallback(why: &ConnectError) {
    warn!(%why, "no shared memory with a process of this host, so UDP is used");
}

/// Logs a command of an endpoint.
pub(crate) fn on_command(command: &Command<OwnedFd>) {
    match command {
        Command::Connect {
            key, to, target, ..
        } => {
            let (endpoint, session) = parts(key);
            debug!(
                endpoint,
                session,
                ?to,
                target = target.0,
                "connecting a session"
            );
        }
        Command::Disconnect { key, reason } => {
            let (endpoint, session) = parts(key);
            info!(endpoint, session, %reason, "session closed here");
        }
        Command::Refuse { code, .. } => info!(%code, "session refused"),
        _ => {}
    }
}

/// Logs an action of the plane.
pub(crate) fn on_action(action: &Action<OwnedFd>) {
    match action {
        Action::Dial { link, to } => match to {
            Target::Tcp(address) => debug!(link = link.0, %address, "connecting to a process"),
            Target::Unix(_) => debug!(link = link.0, "connecting over a UNIX socket"),
        },
        Action::Send { link, frame, .. } => on_sent(*link, frame),
        Action::Close { link } => debug!(link = link.0, "connection closed"),
        Action::Tell { event, .. } => on_event(event),
        Action::Show { .. } => {}
    }
}

/// Logs a received frame.
pub(crate) fn on_frame(link: LinkId, frame: &[u8]) {
    // Decoding the frame a second time is only worth it for a subscriber.
    if !enabled!(Level::WARN) {
        return;
    }
    let link = link.0;
    match Message::decode(frame) {
        Ok(Message::HelloAck(hello)) => {
            info!(link, incarnation = hello.incarnation.0, "process reached");
        }
        Ok(Message::Goodbye { reason }) => match reason {
            GoodbyeReason::Shutdown | GoodbyeReason::Replaced => {
                info!(link, ?reason, "process said goodbye");
            }
            _ => warn!(link, ?reason, "process closed the connection"),
        },
        Ok(Message::Refuse(refuse)) => debug!(link, code = %refuse.code, "session refused there"),
        Err(error) => warn!(link, %error, "malformed message"),
        Ok(_) => {}
    }
}

/// Logs that handlers of an endpoint have panicked, in its thread or in workers, `total` times
/// since its start.
pub(crate) fn on_panics(endpoint: u16, total: u64) {
    error!(endpoint, total, "a handler panicked");
}

fn on_sent(link: LinkId, frame: &[u8]) {
    if !enabled!(Level::WARN) {
        return;
    }
    let link = link.0;
    match Message::decode(frame) {
        Ok(Message::HelloAck(_)) => info!(link, "process greeted"),
        Ok(Message::Goodbye { reason }) => match reason {
            GoodbyeReason::DeclaredFailed => warn!(link, "process has failed: no sign of life"),
            GoodbyeReason::Shutdown | GoodbyeReason::Replaced => debug!(link, ?reason, "goodbye"),
            _ => warn!(link, ?reason, "connection refused"),
        },
        Ok(Message::Refuse(refuse)) => info!(link, code = %refuse.code, "session refused"),
        _ => {}
    }
}

fn on_event(event: &Event<OwnedFd>) {
    match event {
        Event::Accepted { key, .. } => {
            let (endpoint, session) = parts(key);
            info!(endpoint, session, "session granted");
        }
        Event::ConnectFailed { key, failure } => {
            let (endpoint, session) = parts(key);
            warn!(endpoint, session, %failure, "session cannot be made");
        }
        Event::Incoming { peer, .. } => {
            debug!(same_host = peer.same_host, "session asked for");
        }
        Event::Closed { key, reason } => {
            let (endpoint, session) = parts(key);
            match reason {
                CloseReason::Disconnected => info!(endpoint, session, %reason, "session closed"),
                _ => warn!(endpoint, session, %reason, "session lost"),
            }
        }
        Event::Account {
            key,
            account: Account::Away(away),
        } => {
            let (endpoint, session) = parts(key);
            let away = Duration::from(*away);
            info!(endpoint, session, ?away, "peer is in a handler");
        }
        Event::Proven {
            proving,
            proven: false,
        } => info!(?proving, "peer has not proven its address"),
        Event::Serving { key, serving, .. } if serving.draining => {
            let (endpoint, session) = parts(key);
            info!(endpoint, session, "server drains");
        }
        Event::Found { .. }
        | Event::Serving { .. }
        | Event::Proven { .. }
        | Event::OfferVoid { .. }
        | Event::Inquired { .. }
        | Event::Challenge { .. }
        | Event::Account { .. } => {}
    }
}

const fn parts(key: &SessionKey) -> (u16, u32) {
    (key.endpoint.0, key.session.0)
}
