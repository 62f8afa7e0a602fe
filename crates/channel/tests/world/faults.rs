//! Faults strike servers, and servers take requests.

use dunlin_core::{CloseReason, Nanos, RpcError};
use dunlin_wire::ErrorCode;

use crate::draw::Draw;
use crate::driver;
use crate::servers::Fault;
use crate::state::{Event, World};
use dunlin_channel::{Fault as Lost, Outcome};

impl World {
    pub(crate) fn strike(&mut self, fault: Fault) {
        match fault {
            Fault::Crash(at) => {
                let after = self.rng.micros(1_000, 500_000);
                self.end_process(at);
                self.schedule(self.now + after, Event::Strike(Fault::Start(at)));
            }
            Fault::Stop(at) => {
                let after = self.rng.micros(1_000, 2_000_000);
                self.servers[at].is_stopped = true;
                self.lose_links(at, Nanos::from_secs(1));
                self.schedule(self.now + after, Event::Strike(Fault::Continue(at)));
            }
            Fault::Continue(at) => self.servers[at].is_stopped = false,
            Fault::Drain(at) => self.drain(at),
            Fault::Start(at) => self.start(at),
            Fault::List(at, is_listed) => self.servers[at].is_listed = is_listed,
            Fault::Heal => {
                for at in 0..self.servers.len() {
                    self.start(at);
                    self.servers[at].is_stopped = false;
                    self.servers[at].is_listed = true;
                    self.servers[at].refuses = 0;
                }
            }
        }
    }

    fn start(&mut self, at: usize) {
        if self.servers[at].is_draining {
            // The process has not ended.
            self.end_process(at);
        }
        let server = &mut self.servers[at];
        if !server.is_up {
            server.is_up = true;
            server.is_stopped = false;
            server.life += 1;
            server.precise = self.rng.percent(70);
        }
    }

    fn end_process(&mut self, at: usize) {
        self.lose_links(at, Nanos::from_millis(2));
        let server = &mut self.servers[at];
        server.is_up = false;
        server.is_draining = false;
    }

    fn drain(&mut self, at: usize) {
        let server = &mut self.servers[at];
        if !server.is_up || server.is_draining {
            return;
        }
        server.is_draining = true;
        let process = server.process(at);
        let ends = self.now + self.rng.micros(10_000, 1_000_000);
        self.schedule(ends, Event::Strike(Fault::Start(at)));
        for link in self.driver.links_to(process) {
            let after = self.rng.micros(10, 1_000);
            let event = driver::Event::Draining(link);
            self.schedule(self.now + after, Event::Driver(event));
        }
    }

    /// Breaks the links to this server; the client notices within `within`.
    fn lose_links(&mut self, at: usize, within: Nanos) {
        let process = self.servers[at].process(at);
        for link in self.driver.links_to(process) {
            let after = Nanos(self.rng.next_u64() % within.0);
            let reason = match self.rng.below(2) {
                0 => CloseReason::PeerFailed,
                _ => CloseReason::Reset,
            };
            let event = driver::Event::Lost(link, reason);
            self.schedule(self.now + after, Event::Driver(event));
        }
    }

    /// Decides how a request that has just arrived ends, how long that takes, and whether its
    /// handler runs.
    pub(crate) fn serve(&mut self, at: usize) -> (Outcome, Nanos, bool) {
        let server = &self.servers[at];
        let takes = self.rng.micros(1, server.takes_us);
        let precise = server.precise;
        let code = |code| Outcome::Failed(Lost::Sent(RpcError::rejected(code, precise)));
        if server.is_draining {
            return (code(ErrorCode::SHUTTING_DOWN), Nanos(1000), false);
        }
        if self.rng.percent(server.refuses) {
            // A server that is not precise may answer this even after its handler has run.
            let runs = !server.precise && self.rng.percent(50);
            return (code(ErrorCode::OVERLOADED), takes, runs);
        }
        if self.rng.percent(server.fails) {
            let codes = [
                ErrorCode::NO_RESPONSE_MEMORY,
                ErrorCode::REFUSED,
                ErrorCode::HANDLER_FAILED,
                ErrorCode::application(1),
            ];
            return (code(codes[self.rng.index(codes.len())]), takes, true);
        }
        (Outcome::Answered, takes, true)
    }
}
