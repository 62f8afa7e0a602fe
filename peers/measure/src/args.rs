//! The command line, and its check. The program that builds this one reads the command line too
//! (`peers/src/main.rs`), so that help and errors appear without minutes of building.

use std::path::PathBuf;

use clap::{Parser, ValueEnum};

/// Bytes of a message, by default.
const SIZES: [usize; 3] = [32, 1024, 65536];

pub(crate) const EXAMPLES: &str = "Examples:
  cargo run --release -p peers
  cargo run --release -p peers -- --only dunlin-udp,tonic --rounds 9
  cargo run --release -p peers -- --only dunlin-shm,dunlin-shm-server --size 32
  cargo run --release -p peers -- --size 32 --json peers.json
  cargo run --release -p peers -- --aims

With `--aims`, use a machine that does nothing else: about five minutes. An aim is `MISSED`, or
`INVALID` if one of its rows has fewer than 7 rounds in the machine's most frequent state; then give
more, such as `--rounds 21`. System calls are counted by `perf`, if it is installed and may count
(as root, or with `kernel.perf_event_paranoid` = -1); without it, their aims are `INVALID`.

The first run builds for some minutes. Ctrl-C ends a run and prints what was measured so far.

Exit codes: 0, all were measured; 1, one was not; 2, wrong usage; 130, Ctrl-C.";

/// Bytes of the largest message: all peers take it, plain UDP included.
pub(crate) const LARGEST: usize = 64 << 10;

/// The peers to measure, and the files for the figures.
#[derive(Debug, Parser)]
#[command(
    name = "peers",
    about = "Measures the same echo over Dunlin and over other ways to call another process",
    after_help = EXAMPLES
)]
pub(crate) struct Args {
    /// Measures only these peers
    #[arg(
        long,
        value_name = "NAME",
        value_delimiter = ',',
        conflicts_with = "aims"
    )]
    pub(crate) only: Vec<Name>,
    /// Measures only what the aims of channels and servers need: their peers, at 32 B.
    /// After the rows, a table has each aim as a ratio, asked and reached
    #[arg(long)]
    pub(crate) aims: bool,
    /// Bytes of a request and of its response, multiples of 8
    #[arg(
        long = "size",
        value_name = "BYTES",
        value_delimiter = ',',
        default_values_t = SIZES,
        value_parser = size,
        conflicts_with = "aims"
    )]
    sizes: Vec<usize>,
    /// How often each is measured; the table shows medians. 5 by default, 11 with `--aims`
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: Option<u32>,
    /// Milliseconds of each measurement
    #[arg(
        long,
        value_name = "MS",
        default_value_t = 300,
        value_parser = clap::value_parser!(u64).range(1..=60_000)
    )]
    pub(crate) span: u64,
    /// Writes one JSON object for each figure to this file, or with `-` to the standard output
    #[arg(long, value_name = "FILE|-")]
    pub(crate) json: Option<PathBuf>,
}

/// The peers by name, in the order of the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Name {
    /// Dunlin over shared memory
    DunlinShm,
    /// Dunlin over shared memory, client and server as futures
    DunlinShmAsync,
    /// Dunlin's channels over shared memory, from a task of a runtime
    DunlinShmChannel,
    /// Dunlin over kernel UDP
    DunlinUdp,
    /// Dunlin over kernel UDP, client and server as futures
    DunlinUdpAsync,
    /// Dunlin's channels over kernel UDP, from a task of a runtime
    DunlinUdpChannel,
    /// Only if named: the service of `dunlin-shm` in a `Server`
    DunlinShmServer,
    /// Only if named: a typed service over shared memory, without a `Server`
    DunlinShmTyped,
    /// Only if named: the typed service in a `Server`
    DunlinShmServerTyped,
    /// Only if named: the typed service in a `Server`, with handlers on a runtime
    DunlinShmServerTokio,
    /// A hand-over between two threads by a futex, and back
    Futex,
    /// A UNIX socket, with a length before each message
    Unix,
    /// A TCP connection, with a length before each message
    Tcp,
    /// UDP sockets without any protocol: a request is sent again only after a silence
    Udp,
    /// tarpc with bincode over TCP
    Tarpc,
    /// gRPC: tonic with prost over HTTP/2
    Tonic,
    /// QUIC: quinn, a stream for each call, encrypted
    Quinn,
}

impl Args {
    /// The peers that were named, or all, in the order of the table.
    pub(crate) fn peers(&self) -> Vec<Name> {
        self.peers_of(|name| match self.only.is_empty() {
            true => name.is_usual(),
            false => self.only.contains(&name),
        })
    }

    /// The peers for which `is_measured` is true, in the order of the table.
    pub(crate) fn peers_of(&self, is_measured: impl Fn(Name) -> bool) -> Vec<Name> {
        let all = Name::value_variants().iter().copied();
        all.filter(|name| is_measured(*name)).collect()
    }

    /// The sizes of messages; `of_aims` with `--aims`.
    pub(crate) fn sizes(&self, of_aims: usize) -> Vec<usize> {
        match self.aims {
            true => vec![of_aims],
            false => self.sizes.clone(),
        }
    }

    /// How often each peer is measured.
    pub(crate) fn rounds(&self) -> u32 {
        self.rounds.unwrap_or(if self.aims { 11 } else { 5 })
    }
}

impl Name {
    /// Whether it is measured if no peer is named.
    fn is_usual(self) -> bool {
        !matches!(
            self,
            Self::DunlinShmServer
                | Self::DunlinShmTyped
                | Self::DunlinShmServerTyped
                | Self::DunlinShmServerTokio
        )
    }

    /// As on the command line.
    pub(crate) fn text(self) -> String {
        self.to_possible_value()
            .map_or_else(String::new, |value| value.get_name().to_owned())
    }
}

fn size(text: &str) -> Result<usize, String> {
    let size: usize = text.parse().map_err(|error| format!("{error}"))?;
    if size == 0 || !size.is_multiple_of(8) || size > LARGEST {
        return Err(format!("it must be a multiple of 8, up to {}", LARGEST));
    }
    Ok(size)
}
