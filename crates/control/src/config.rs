//! The limits and times of the control plane, in one place, and its counters.

use dunlin_core::Nanos;

use super::HeartbeatConfig;

/// The configuration of the control plane. Every field can be set; the defaults work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PlaneConfig {
    /// The times of the failure detector.
    pub heartbeat: HeartbeatConfig,
    /// Timeout for Hello, from the beginning of a connection (rule C2), and for the return of a
    /// nonce (rule C3).
    pub hello_timeout: Nanos,
    /// Timeout of one attempt to reach an address.
    pub dial_timeout: Nanos,
    /// Wait before the second try after a failure; it doubles with each further try.
    pub backoff_min: Nanos,
    /// Longest such wait.
    pub backoff_max: Nanos,
    /// How long the side that made a connection keeps it without sessions.
    pub linger: Nanos,
    /// The most connections that other processes have made and that have sent Hello. Once three
    /// quarters of these places are taken, each origin has the same share of all places.
    pub max_links: usize,
    /// The most incoming connections on which the other side has not sent Hello, in addition to
    /// `max_links`.
    pub max_half_open: usize,
    /// The most remote addresses to which this process connects.
    pub max_routes: usize,
    /// The most sessions that this process is connecting.
    pub max_attempts: usize,
    /// The most look-ups over one connection that wait for their answer; further attempts wait at
    /// this side.
    pub max_lookups: usize,
    /// The most requests for a session, over one connection, that endpoints have not answered.
    pub max_pending_per_link: usize,
    /// The most requests for a session that one endpoint has not answered, not counting requests
    /// whose peers must prove an address.
    pub max_pending_per_endpoint: usize,
    /// The most requests for a session whose peers must prove an address, over all endpoints. Once
    /// three quarters of these places are taken, each origin has the same share of all places.
    pub max_unproven: usize,
    /// The most sessions over one connection.
    pub max_sessions_per_link: usize,
}

impl Default for PlaneConfig {
    fn default() -> Self {
        DEFAULT
    }
}

const DEFAULT: PlaneConfig = PlaneConfig {
    heartbeat: HeartbeatConfig::DEFAULT,
    hello_timeout: Nanos::from_secs(1),
    dial_timeout: Nanos::from_secs(1),
    backoff_min: Nanos::from_millis(1),
    backoff_max: Nanos::from_millis(100),
    linger: Nanos::from_secs(10),
    max_links: 512,
    max_half_open: 64,
    max_routes: 4096,
    max_attempts: 1 << 16,
    max_lookups: 64,
    max_pending_per_link: 256,
    max_pending_per_endpoint: 1024,
    max_unproven: 1024,
    max_sessions_per_link: 1 << 16,
};

const _: () = {
    // Most connections must be available to processes that have sent Hello.
    assert!(DEFAULT.max_half_open < DEFAULT.max_links);
    // One connection must not be able to fill an endpoint's queue alone.
    assert!(DEFAULT.max_pending_per_link < DEFAULT.max_pending_per_endpoint);
    // All look-ups of a connection may become requests at the other side.
    assert!(DEFAULT.max_lookups <= DEFAULT.max_pending_per_link);
    assert!(DEFAULT.backoff_min.0 < DEFAULT.backoff_max.0);
};

impl PlaneConfig {
    /// The wait before retry number `retries + 1`: random, between half of a bound and the bound,
    /// so that many clients of one server do not come back at the same moment. The bound begins at
    /// `backoff_min` and doubles with each retry, up to `backoff_max`.
    pub(super) fn backoff(&self, retries: u32, random: u32) -> Nanos {
        let doubled = self.backoff_min.0.saturating_mul(1 << retries.min(20));
        let wait = doubled.min(self.backoff_max.0).max(2);
        let spread = (u128::from(wait / 2) * u128::from(random)) >> 32;
        Nanos(wait - wait / 2 + u64::try_from(spread).unwrap_or(0))
    }
}

/// The counters of the control plane since its start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PlaneCounters {
    /// Connections closed because of a wrong message.
    pub bad_messages: u64,
    /// Connections closed because the two sides had no version in common.
    pub version_mismatches: u64,
    /// Incoming connections closed because Hello did not come in time.
    pub silent: u64,
    /// Incoming connections closed before Hello to make room for newer ones.
    pub half_open_evicted: u64,
    /// Connections without sessions closed to make room for newer ones.
    pub idle_evicted: u64,
    /// Connections with sessions closed to make room for others, because their origin had more than
    /// its share.
    pub share_evicted: u64,
    /// Incoming connections refused because there were too many.
    pub links_refused: u64,
    /// Peers declared failed by the failure detector.
    pub peers_failed: u64,
    /// Messages about a session that does not exist; ignored.
    pub unknown_sessions: u64,
    /// Requests for a session refused because too many were waiting.
    pub busy_refusals: u64,
    /// Connections that moved from TCP to a UNIX socket.
    pub upgrades: u64,
    /// Inquiries of other processes that the plane answered because the endpoint was in a handler.
    pub answered_for_busy: u64,
}

impl PlaneCounters {
    /// Every field with its name, in the order above.
    pub const fn named(&self) -> [(&'static str, u64); 12] {
        let Self {
            bad_messages,
            version_mismatches,
            silent,
            half_open_evicted,
            idle_evicted,
            share_evicted,
            links_refused,
            peers_failed,
            unknown_sessions,
            busy_refusals,
            upgrades,
            answered_for_busy,
        } = *self;
        [
            ("bad_messages", bad_messages),
            ("version_mismatches", version_mismatches),
            ("silent", silent),
            ("half_open_evicted", half_open_evicted),
            ("idle_evicted", idle_evicted),
            ("share_evicted", share_evicted),
            ("links_refused", links_refused),
            ("peers_failed", peers_failed),
            ("unknown_sessions", unknown_sessions),
            ("busy_refusals", busy_refusals),
            ("upgrades", upgrades),
            ("answered_for_busy", answered_for_busy),
        ]
    }
}
