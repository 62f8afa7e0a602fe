//! Changes between two readings of a process.

use dunlin_insight::{Endpoint, Group, Histogram, Snapshot};

use super::columns::{Columns, rate, time};

/// An endpoint at two moments.
#[derive(Clone, Debug)]
pub(crate) struct Between<'a> {
    /// The process.
    pub(crate) pid: u64,
    before: Option<&'a Endpoint>,
    /// The later moment.
    pub(crate) after: &'a Endpoint,
}

/// Lines between two headings.
const PAGE: u64 = 20;

/// Every endpoint of the later readings, with the earlier reading of it if there is one.
pub(crate) fn all_between<'a>(before: &'a [Snapshot], after: &'a [Snapshot]) -> Vec<Between<'a>> {
    let mut all = Vec::new();
    for snapshot in after {
        let earlier = before.iter().find(|b| b.address == snapshot.address);
        let earlier = earlier.map_or(&[][..], |earlier| &earlier.endpoints);
        for endpoint in &snapshot.endpoints {
            let same = |e: &&Endpoint| e.index == endpoint.index && e.clock_ns <= endpoint.clock_ns;
            all.push(Between {
                pid: snapshot.pid,
                before: earlier.iter().find(same),
                after: endpoint,
            });
        }
    }
    all
}

impl Between<'_> {
    /// Seconds between the two reports, on the endpoint's clock; 0 if the endpoint has not run in
    /// between.
    pub(crate) fn seconds(&self) -> f64 {
        let before = self.before.map_or(0, |before| before.clock_ns);
        // An interval has far fewer than 2^52 nanoseconds.
        self.after.clock_ns.saturating_sub(before) as f64 / 1e9
    }

    /// The growth of a number.
    pub(crate) fn growth(&self, group: Group, name: &str) -> u64 {
        let before = self
            .before
            .map_or(0, |before| before.group(group).get(name));
        self.after.group(group).get(name).saturating_sub(before)
    }

    /// The growth of a number per second.
    pub(crate) fn rate(&self, group: Group, name: &str) -> f64 {
        self.per_second(self.growth(group, name))
    }

    /// The growth of all drops per second.
    pub(crate) fn drops(&self) -> f64 {
        let before = self.before.map_or(0, |before| before.drops.total());
        self.per_second(self.after.drops.total().saturating_sub(before))
    }

    /// Times of the interval.
    pub(crate) fn histogram(&self, name: &str) -> Histogram {
        let before = self.before.and_then(|before| before.histogram(name));
        let after = self.after.histogram(name).cloned().unwrap_or_default();
        before.map_or(after.clone(), |before| after.since(before))
    }

    fn per_second(&self, growth: u64) -> f64 {
        let seconds = self.seconds();
        if seconds > 0.0 {
            growth as f64 / seconds
        } else {
            0.0
        }
    }
}

/// One line for each endpoint, with headings now and then. `shown`: the number of intervals shown
/// before.
pub(super) fn lines(between: &[Between<'_>], shown: u64) -> String {
    let headings = [
        "endpoint",
        "requests out/s",
        "in/s",
        "packets out/s",
        "in/s",
        "again/s",
        "drops/s",
        "stalls/s",
        "sessions",
        "call 50 %",
        "99 %",
        "rtt 50 %",
        "99 %",
    ];
    let mut columns = Columns::new(1, &headings);
    for endpoint in between {
        columns.row(cells(endpoint));
    }
    let text = columns.render("");
    match shown.is_multiple_of(PAGE) {
        true => text,
        false => text
            .split_once('\n')
            .map_or("", |(_, rest)| rest)
            .to_owned(),
    }
}

fn cells(endpoint: &Between<'_>) -> Vec<String> {
    let counter = |name| format!("{:>7}", rate(endpoint.rate(Group::Counters, name)));
    let (call, rtt) = (endpoint.histogram("call"), endpoint.histogram("rtt"));
    let quantile = |of: &Histogram, part| format!("{:>8}", time(of.quantile(part)));
    vec![
        format!("{} ({})", endpoint.after.index, endpoint.after.transport),
        counter("requests_sent"),
        counter("requests_received"),
        counter("tx_packets"),
        counter("rx_packets"),
        counter("retransmissions"),
        format!("{:>7}", rate(endpoint.drops())),
        counter("stalls"),
        endpoint.after.gauges.get("sessions").to_string(),
        quantile(&call, 0.5),
        quantile(&call, 0.99),
        quantile(&rtt, 0.5),
        quantile(&rtt, 0.99),
    ]
}
