//! Charts of what was measured on this machine.

use super::super::papers::Beside;
use super::{
    TRANSPORTS, Wanted, bar, bars, baseline_line, by_transport, chart, colour, measured_line,
    ratio_line, word,
};
use harness::draw::{Axis, Picture, Scale, zero_based};
use harness::row::Row;

pub(super) fn latency(rows: &[&Row]) -> Vec<Picture> {
    let of = |metric, title: &str| {
        let wanted = Wanted {
            metric,
            x: "size",
            params: &[],
        };
        let mut lines = by_transport(rows, wanted);
        // RDMA reads have no server that answers; they are in the table.
        let published = wanted.published("latency", Beside::Median).into_iter();
        lines.extend(published.filter(|line| line.name.starts_with("eRPC")));
        let x = Axis::new("bytes of request and response", "B", Scale::Each);
        let y = Axis::new("round trip", "ns", Scale::Log);
        chart(title, x, y, lines)
    };
    vec![
        of("rtt_p50", "Round trip of one RPC at a time, median"),
        of(
            "rtt_p99",
            "Round trip of one RPC at a time, 99th percentile",
        ),
    ]
}

pub(super) fn rate(rows: &[&Row]) -> Vec<Picture> {
    // Rows of other sizes are in the table. Old rows do not name the size: it was this one.
    let is_drawn = |row: &&&Row| {
        let size = word(row, "size");
        word(row, "packing").as_deref() != Some("false") && size.is_none_or(|size| size == "32")
    };
    let rows: Vec<&Row> = rows.iter().filter(is_drawn).copied().collect();
    let of = |pattern, title: &str| {
        let wanted = Wanted {
            metric: "rpc_per_s",
            x: "batch",
            params: &[("pattern", pattern)],
        };
        let mut lines = by_transport(&rows, wanted);
        lines.extend(wanted.published("rate", Beside::Median));
        let x = Axis::new("requests issued together", "", Scale::Each);
        let y = Axis::new("RPCs per second and thread", "1/s", Scale::Log);
        chart(title, x, y, lines)
    };
    vec![
        of("one_way", "Rate of 32-byte RPCs, a client and a server"),
        of("symmetric", "Rate of 32-byte RPCs, both sides call"),
    ]
}

pub(super) fn bandwidth(rows: &[&Row]) -> Vec<Picture> {
    let of = |inflight, title: &str| {
        let wanted = Wanted {
            metric: "gbps",
            x: "size",
            params: &[("inflight", inflight)],
        };
        let mut lines = by_transport(rows, wanted);
        lines.extend(wanted.published("bandwidth", Beside::Median));
        let x = Axis::new("bytes of a request", "B", Scale::Each);
        let y = Axis::new("data delivered, Gbit/s", "", Scale::Log);
        chart(title, x, y, lines)
    };
    vec![
        of("1", "Bandwidth, one request at a time"),
        of("4", "Bandwidth, four requests at a time"),
    ]
}

pub(super) fn mixed(rows: &[&Row]) -> Vec<Picture> {
    let of = |metric, title: &str| {
        let wanted = rows.iter().filter(|row| row.metric == metric);
        let all = wanted.map(|row| {
            let large = word(row, "large").unwrap_or_default();
            bar(
                row,
                format!("{}, large {large}s", row.transport),
                colour(&row.transport),
            )
        });
        let axis = zero_based("round trip of a 32-byte RPC on the same session", "ns");
        bars(title, axis, "without large messages", all.collect())
    };
    vec![
        of("rtt_p50", "Small RPCs beside 8 MB messages, median"),
        of(
            "rtt_p99",
            "Small RPCs beside 8 MB messages, 99th percentile",
        ),
    ]
}

pub(super) fn sessions(rows: &[&Row]) -> Vec<Picture> {
    let x = || Axis::new("sessions between two endpoints", "", Scale::Each);
    let wanted = |metric| Wanted {
        metric,
        x: "sessions",
        params: &[],
    };
    let rate = wanted("rpc_per_s");
    let ratios = TRANSPORTS.into_iter().map(|transport| {
        let of = |row: &&&Row| row.transport == transport && rate.is(row);
        let rows: Vec<&Row> = rows.iter().filter(of).copied().collect();
        ratio_line(transport, colour(transport), &rows, "sessions")
    });
    let mut ratios: Vec<_> = ratios.filter(|line| !line.points.is_empty()).collect();
    ratios.extend(rate.published("sessions", Beside::Ratio));
    let memory = by_transport(rows, wanted("bytes_per_session"));
    vec![
        chart(
            "Rate with many sessions, against 100",
            x(),
            Axis::new(
                "rate as a part of that with 100 sessions",
                "",
                Scale::Linear,
            ),
            ratios,
        ),
        chart(
            "Memory of a session that was used and is idle",
            x(),
            Axis::new(
                "bytes of both sides; of few sessions, mostly the processes'",
                "B",
                Scale::Log,
            ),
            memory,
        ),
    ]
}

pub(super) fn idle(rows: &[&Row]) -> Vec<Picture> {
    let wanted = Wanted {
        metric: "rtt_first",
        x: "silence_ms",
        params: &[],
    };
    let x = Axis::new("silence before it, ms", "", Scale::Each);
    let y = Axis::new("round trip", "ns", Scale::Log);
    let busy = rows.iter().filter(|row| row.metric == "cpu_percent");
    let busy = busy.map(|row| bar(row, row.transport.to_string(), colour(&row.transport)));
    vec![
        chart(
            "First RPC after a silence",
            x,
            y,
            by_transport(rows, wanted),
        ),
        bars(
            "Processor time of an idle server with 100 sessions",
            zero_based("percent of a core", "%"),
            "",
            busy.collect(),
        ),
    ]
}

pub(super) fn slow_handler(rows: &[&Row]) -> Vec<Picture> {
    let of = |mode, title: &str| {
        let wanted = Wanted {
            metric: "fast_rtt_p99",
            x: "handler_us",
            params: &[("mode", mode)],
        };
        let mut lines = Vec::new();
        for transport in TRANSPORTS {
            let is = |row: &&&Row| row.transport == transport && wanted.is(row);
            let rows: Vec<&Row> = rows.iter().filter(is).copied().collect();
            lines.push(measured_line(transport, colour(transport), &rows, wanted.x));
            lines.push(baseline_line(colour(transport), &rows, wanted.x));
        }
        lines.retain(|line| !line.points.is_empty());
        let x = Axis::new("time that the slow handler takes, µs", "", Scale::Each);
        let y = Axis::new(
            "round trip of a fast RPC, 99th percentile",
            "ns",
            Scale::Log,
        );
        chart(title, x, y, lines)
    };
    vec![
        of(
            "dispatch",
            "Fast RPCs beside slow ones in the dispatch thread",
        ),
        of("background", "Fast RPCs beside slow ones in worker threads"),
    ]
}

pub(super) fn faces(rows: &[&Row]) -> Vec<Picture> {
    let all = rows
        .iter()
        .filter(|row| row.metric == "rpc_per_s")
        .map(|row| {
            let face = word(row, "face").unwrap_or_default();
            bar(
                row,
                format!("{}, {face}", row.transport),
                colour(&row.transport),
            )
        });
    vec![bars(
        "The same RPCs by each face",
        zero_based("RPCs per second and thread", "1/s"),
        "the poll API in the same round",
        all.collect(),
    )]
}
