//! The state of `top`: two readings, their differences, and the choices of the user.

use std::collections::VecDeque;

use dunlin_insight::{Group, SessionRow, Snapshot};

use crate::commands::stats::{Between, all_between};

/// Rates that are kept for the picture.
const HISTORY: usize = 240;

/// The orders of endpoints.
const ENDPOINT_ORDERS: [&str; 4] = ["index", "requests", "drops", "call 99 %"];
/// The orders of sessions.
const SESSION_ORDERS: [&str; 4] = ["in flight", "rtt", "waiting", "number"];

/// One of the two tables.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Table {
    Endpoints,
    Sessions,
}

/// All values that a picture shows.
#[derive(Debug)]
pub(super) struct Model {
    before: Vec<Snapshot>,
    /// The latest reading.
    pub(super) after: Vec<Snapshot>,
    /// True while new readings do not change the picture.
    pub(super) held: bool,
    /// The table that keys act on.
    pub(super) table: Table,
    /// The chosen endpoint, as a row of its table.
    pub(super) endpoint: usize,
    /// The chosen session.
    pub(super) session: usize,
    orders: [usize; 2],
    reversed: [bool; 2],
    /// Requests of all endpoints in each interval, per second.
    pub(super) history: VecDeque<u64>,
}

impl Model {
    pub(super) fn new(first: Vec<Snapshot>) -> Self {
        Self {
            before: first.clone(),
            after: first,
            held: false,
            table: Table::Endpoints,
            endpoint: 0,
            session: 0,
            orders: [0; 2],
            reversed: [false; 2],
            history: VecDeque::with_capacity(HISTORY),
        }
    }

    /// Takes the next reading.
    pub(super) fn take(&mut self, reading: Vec<Snapshot>) {
        self.before = std::mem::replace(&mut self.after, reading);
        let rate: f64 = self.endpoints().iter().map(requests).sum();
        if self.history.len() == HISTORY {
            self.history.pop_front();
        }
        // There are fewer than 2^53 requests a second.
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a rate is neither negative nor that large"
        )]
        self.history.push_back(rate as u64);
        let (endpoints, sessions) = (self.endpoints().len(), self.sessions().len());
        self.endpoint = self.endpoint.min(endpoints.saturating_sub(1));
        self.session = self.session.min(sessions.saturating_sub(1));
    }

    /// The endpoints in the order that was chosen.
    pub(super) fn endpoints(&self) -> Vec<Between<'_>> {
        let mut all = all_between(&self.before, &self.after);
        let key = |endpoint: &Between<'_>| match self.orders[0] {
            1 => requests(endpoint),
            2 => endpoint.drops(),
            // The nanoseconds are far fewer than 2^53.
            3 => endpoint.histogram("call").quantile(0.99) as f64,
            // The lowest index first.
            _ => -(endpoint.after.index as f64),
        };
        all.sort_by(|one, other| key(other).total_cmp(&key(one)));
        if self.reversed[0] {
            all.reverse();
        }
        all
    }

    /// The sessions of the chosen endpoint in the order that was chosen.
    pub(super) fn sessions(&self) -> Vec<SessionRow> {
        let endpoints = self.endpoints();
        let Some(endpoint) = endpoints.get(self.endpoint) else {
            return Vec::new();
        };
        let mut sessions = endpoint.after.sessions.clone();
        let column = ["in_flight", "rtt_ns", "backlog", "number"][self.orders[1]];
        sessions.sort_by_key(|session| std::cmp::Reverse(session.get(column)));
        if self.reversed[1] {
            sessions.reverse();
        }
        sessions
    }

    /// The orders of the two tables.
    pub(super) fn orders(&self) -> [&'static str; 2] {
        [
            ENDPOINT_ORDERS[self.orders[0]],
            SESSION_ORDERS[self.orders[1]],
        ]
    }

    /// Chooses the row below or above.
    pub(super) fn step(&mut self, down: bool) {
        let (rows, chosen) = match self.table {
            Table::Endpoints => (self.endpoints().len(), &mut self.endpoint),
            Table::Sessions => (self.sessions().len(), &mut self.session),
        };
        *chosen = match down {
            true => (*chosen + 1).min(rows.saturating_sub(1)),
            false => chosen.saturating_sub(1),
        };
        if self.table == Table::Endpoints {
            self.session = 0;
        }
    }

    pub(super) fn other_table(&mut self) {
        self.table = match self.table {
            Table::Endpoints => Table::Sessions,
            Table::Sessions => Table::Endpoints,
        };
    }

    pub(super) fn sort_by_next(&mut self) {
        let order = &mut self.orders[self.table as usize];
        *order = (*order + 1) % ENDPOINT_ORDERS.len();
    }

    pub(super) fn reverse(&mut self) {
        let reversed = &mut self.reversed[self.table as usize];
        *reversed = !*reversed;
    }
}

/// Requests of both directions in a second.
pub(super) fn requests(endpoint: &Between<'_>) -> f64 {
    endpoint.rate(Group::Counters, "requests_sent")
        + endpoint.rate(Group::Counters, "requests_received")
}

const _: () = assert!(ENDPOINT_ORDERS.len() == SESSION_ORDERS.len());
