//! A client: a process with an endpoint, and channels that share its sessions.
//!
//! | file | what it owns |
//! |---|---|
//! | `client/channel.rs` | a channel's machine, and its calls |
//! | `client/attempts.rs` | the attempts of a channel, on shared sessions |
//! | `client/around.rs` | the parts that the channels of a client share |
//! | `client/lines.rs` | the sessions, which the trunks of `dunlin_channel` order |
//! | `client/turns.rs`, `client/picks.rs` | the judges of turns and of picks |
//! | `client/drops.rs`, `client/load.rs` | callers that drop their calls; functions for drills |
//! | `client/late.rs` | a planted bug |
//!
//! Called by the world, and by `stage`, which stands in for a nexus.

mod around;
mod attempts;
mod channel;
mod drops;
mod late;
mod lines;
mod load;
mod picks;
mod turns;

use dunlin_channel::{Opened, Said};
use dunlin_core::{CloseReason, Cx, Nanos, Session};
use dunlin_wire::control::Serving;

use self::around::Around;
pub(super) use self::channel::Channel;
use self::late::Late;
use self::lines::{Inbox, Lines};
use super::bug::Bug;
use super::desk::{Desk, Line};
use super::ledger::Shared;
use super::plan::{self, Plan};
use crate::world::net::{NetHandle, PortId, SimEndpoint, SimTransport, take_reports};
use crate::world::rng::Rng;

pub(super) struct Client {
    port: PortId,
    around: Around,
    channels: Vec<Channel>,
    /// A channel that the program drops during the run, and the time at which it does.
    drops: Option<(usize, Nanos)>,
    /// Completions that a planted bug holds back.
    late: Late,
    has_late: bool,
    ledger: Shared,
}

impl Client {
    pub(super) fn boot(
        net: &NetHandle,
        port: PortId,
        plan: &Plan,
        (desk, ledger): (Desk, Shared),
        mut rng: Rng,
    ) -> Self {
        let seed = rng.next_u64();
        let mut rpc = SimTransport::endpoint(net, port, Inbox::default(), plan::endpoint(), seed);
        rpc.on_completion(|app, done, _: &mut Cx<'_>| app.done.push(done));
        let channels = (0..plan.channels).map(|index| {
            let shared = (desk.clone(), ledger.clone());
            Channel::open(index, port, plan, shared, rng.fork())
        });
        let channels = channels.collect();
        Self {
            port,
            around: Around::new(Lines::new(rpc, (desk, port)), plan),
            channels,
            drops: plan.drops,
            late: Late::default(),
            has_late: plan.bug == Some(Bug::LateEndOfLost),
            ledger,
        }
    }

    pub(super) fn run_once(&mut self) {
        let around = &mut self.around;
        let rpc = around.lines.rpc();
        rpc.run_once();
        around.now = around.now.max(rpc.now());
        take_reports(rpc);
        let mut ended = std::mem::take(&mut rpc.app_mut().done);
        if self.has_late {
            self.late.delay_lost(&mut ended, around.now);
        }
        for done in ended {
            let channel = &mut self.channels[channel::index_of(done.tag)];
            channel.on_done(done, around);
            // If the caller has dropped another call, that call's attempts must not begin.
            channel.settle(around);
        }
        self.drop_due();
        self.take_turns();
        for channel in &mut self.channels {
            channel.turn(&mut self.around);
        }
        while self.take_turns() {
            for channel in &mut self.channels {
                channel.settle(&mut self.around);
            }
        }
        if let Some(what) = self.around.turns.take_violation() {
            self.ledger.borrow_mut().violate(what);
        }
    }

    /// Issues attempts that wait, while there is room. True if there were any.
    fn take_turns(&mut self) -> bool {
        let mut were_any = false;
        let Self {
            around, channels, ..
        } = self;
        while let Some(member) = around.trunks.next_turn(&mut around.lines, around.now) {
            were_any = true;
            channels[member.0 as usize].on_turn(member.1, around);
        }
        were_any
    }

    fn drop_due(&mut self) {
        if let Some((channel, _)) = self.drops.take_if(|(_, at)| *at <= self.around.now)
            && let Some(channel) = self.channels.get_mut(channel)
        {
            channel.close(self.around.now);
            // Its attempts leave before others get their turns.
            channel.settle(&mut self.around);
        }
    }

    pub(super) fn next_wakeup(&mut self) -> Nanos {
        let now = self.around.now;
        let own = self.channels.iter().filter_map(|it| it.next_wakeup(now));
        let drops = self.drops.map(|(_, at)| at);
        let next = own.chain(drops).min().unwrap_or(Nanos::MAX);
        let around = &mut self.around;
        let next = next.min(around.trunks.next_wakeup());
        around.lines.rpc().next_wakeup().min(next)
    }

    pub(super) fn rpc(&mut self) -> &mut SimEndpoint<Inbox> {
        self.around.lines.rpc()
    }

    pub(super) fn channels(&mut self) -> &mut [Channel] {
        &mut self.channels
    }

    /// Describes a session that is left although no channel is, if there is one.
    pub(super) fn left_over(&self) -> Option<String> {
        let are_closed = self.channels.iter().all(Channel::is_closed);
        let left = (self.around.lines.len(), self.around.trunks.sessions());
        let port = self.port.0;
        (are_closed && left != (0, 0))
            .then(|| format!("port {port}: no channel is left, but {left:?} sessions are"))
    }

    // Events from the stage.

    /// Handles the opening of a session, which the client may no longer want.
    pub(super) fn on_opened(&mut self, line: Line, session: Session, opened: &Opened) {
        let around = &mut self.around;
        if !around.lines.on_opened(line, session) {
            return;
        }
        let said = said(opened.server, opened.draining);
        around.trunks.on_serving(line, said, &mut around.lines);
        let Some((members, facts)) = around.trunks.on_opened(line, opened.window) else {
            return;
        };
        for (channel, link) in members {
            self.channels[channel as usize].on_opened(link, &facts, around.now);
        }
    }

    /// Handles a session that could not be opened, or that is lost.
    pub(super) fn on_closed(&mut self, line: Line, reason: CloseReason) {
        let around = &mut self.around;
        around.lines.on_lost(line, reason);
        let loss = around.trunks.on_closed(line, &mut around.lines, around.now);
        for (channel, link) in loss.map(|loss| loss.members).unwrap_or_default() {
            self.channels[channel as usize].on_closed(link, reason, around);
        }
    }

    pub(super) fn on_draining(&mut self, line: Line, server: u64) {
        let around = &mut self.around;
        let said = said(server, true);
        around.trunks.on_serving(line, said, &mut around.lines);
        for (channel, link) in around.trunks.members_of(line) {
            self.channels[channel as usize].on_draining(link, around.now);
        }
    }

    pub(super) fn on_names(&mut self, channel: usize, names: Option<&[String]>) {
        self.channels[channel].on_names(names, self.around.now);
    }

    /// Closes every channel.
    pub(super) fn close(&mut self) {
        for channel in &mut self.channels {
            channel.close(self.around.now);
            // Its attempts leave before others get their turns.
            channel.settle(&mut self.around);
        }
    }
}

/// The announcement of a server with one endpoint.
const fn said(process: u64, draining: bool) -> Said {
    Said {
        process,
        serving: Serving {
            draining,
            endpoints: 1,
            health: None,
        },
    }
}
