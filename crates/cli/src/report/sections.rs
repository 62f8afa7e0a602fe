//! What the page consists of: an experiment or two each, and what a reader must know to judge the
//! figures.

/// One part of the page.
#[derive(Debug)]
pub(super) struct Section {
    /// The names that its rows have.
    pub(super) experiments: &'static [&'static str],
    pub(super) title: &'static str,
    /// What is measured, against what, and how the papers did it.
    pub(super) says: &'static str,
    /// The command that makes its rows.
    pub(super) command: &'static str,
}

/// In the order of the page.
pub(super) const ALL: &[Section] = &[
    Section {
        experiments: &["latency"],
        title: "Latency against size",
        says: "One RPC at a time between two processes, the same number of bytes each way. The \
               baseline sends the same bytes through a bare cache line or a bare socket. The \
               paper's round trips go through a switch and two NICs.",
        command: "dunlin bench latency",
    },
    Section {
        experiments: &["rate"],
        title: "Rate against batch",
        says: "60 RPCs of 32 bytes in flight over 8 sessions, issued in batches, by one thread. \
               The baseline of shared memory exchanges the same messages over bare rings, that of \
               UDP sends datagrams in one direction. The paper's threads each call ten others and \
               serve them.",
        command: "dunlin bench rate",
    },
    Section {
        experiments: &["faces"],
        title: "Faces",
        says: "The same RPCs by the poll API, by futures, and by a typed service of fixed layout. \
               The baseline is the poll API in the same round.",
        command: "dunlin bench faces",
    },
    Section {
        experiments: &["sessions"],
        title: "Sessions",
        says: "Many sessions between two endpoints, used in turns. The papers' point is that \
               state in the NIC runs out, and state in memory does not.",
        command: "dunlin bench sessions",
    },
    Section {
        experiments: &["idle"],
        title: "Idling",
        says: "What it costs to have nothing to do, and how long the first RPC takes after that: \
               both threads sleep, and the kernel wakes them. The baseline wakes two threads. The \
               papers' threads poll, and never sleep.",
        command: "dunlin bench idle",
    },
    Section {
        experiments: &["bandwidth"],
        title: "Bandwidth",
        says: "Large requests with small responses over one session. The baseline of shared memory \
               is one copy of the same bytes, that of UDP bare datagrams; TCP is measured beside \
               them. Every cache line is checked at the receiver.",
        command: "dunlin bench bandwidth",
    },
    Section {
        experiments: &["loss"],
        title: "Loss",
        says: "8 MB requests over a simulated network of 100 Gb/s and 6 µs that loses packets, and \
               over kernel UDP whose receiver loses datagrams on purpose. The baseline is the same \
               without losses. The paper resends everything behind a lost packet after 5 ms.",
        command: "dunlin bench loss",
    },
    Section {
        experiments: &["reorder"],
        title: "Reordering",
        says: "The same over a simulated network that delivers some packets late. The paper takes \
               such packets for lost.",
        command: "dunlin bench reorder",
    },
    Section {
        experiments: &["mixed"],
        title: "Small beside large",
        says: "Small RPCs, one at a time, while 8 MB messages go over the same session. The \
               baseline is the same without them.",
        command: "dunlin bench mixed",
    },
    Section {
        experiments: &["slow-handler"],
        title: "Slow handlers",
        says: "Round trips of fast RPCs while other requests of the same client take long. The \
               baseline is the same without those.",
        command: "dunlin bench slow-handler",
    },
    Section {
        experiments: &["factors"],
        title: "Optimisations",
        says: "The RPCs of the rate, both ways, while one optimisation of the paper, or congestion \
               control, is switched off and on again in turns. The baseline has all of them on. \
               The paper switches off one after the other; its ratios are each to the row before.",
        command: "dunlin bench factors",
    },
    Section {
        experiments: &["incast", "incast_background"],
        title: "Incast",
        says: "8 MB requests of many hosts to one, back to back, in the simulator: 25 Gb/s to each \
               host, and a switch with a shared buffer of 12 MB, as in the paper's cluster.",
        command: "dunlin bench incast",
    },
    Section {
        experiments: &["cluster"],
        title: "Cluster",
        says: "32-byte RPCs of everybody to everybody on 100 simulated hosts in five racks, with \
               up to two million sides of sessions. The costs of work are calibrated on the \
               paper's rate of one thread.",
        command: "dunlin bench cluster",
    },
    Section {
        experiments: &["raw"],
        title: "The machine itself",
        says: "What the baselines are made of: round trips of cache lines and datagrams, rates, \
               copies, and clocks, without the library.",
        command: "dunlin bench raw",
    },
];
