//! `dunlin trace`: the packets of a running process, for Wireshark or as lines (design §11). The
//! process writes them into a ring in its counters file as long as this command asks for them.

mod lines;
mod pcapng;

use std::fs::File;
use std::io::{BufWriter, IsTerminal, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use dunlin_insight::{Found, Packet, Trace};

use crate::commands::stats::interval;
use crate::say::print;
use harness::signal;

const EXAMPLES: &str = "\
Examples:
  dunlin trace 4711                              one line per packet, until Ctrl-C
  dunlin trace 4711 -o calls.pcapng --seconds 5  for Wireshark
  dunlin trace 4711 --endpoint 2 --count 1000 -o calls.pcapng
  dunlin trace 4711 -o - | tshark -r -           packets as they arrive

The trace has the packets of requests and responses, whatever transport carries them. Each gets
Ethernet, IP and UDP headers whose addresses show the sender: endpoint 258 of the process is
10.0.1.2, the peer that its transport calls 258 is 10.128.1.2, and an unknown sender is
10.255.255.255. A dropped packet has a comment. If data stayed in its sender's memory, the trace has
only the header. A process is a little slower only while it is traced.

Exit codes: 0, it was traced; 1, the process cannot be traced, or has ended; 2, wrong usage; 130,
Ctrl-C without an output file.";

/// Time between two messages that ask the process to continue the trace.
const WORD_EVERY: Duration = Duration::from_millis(100);
/// Pause when no packet has arrived.
const PAUSE: Duration = Duration::from_millis(2);

/// The arguments of `dunlin trace`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The process
    pid: u32,
    /// Only the endpoint with this index
    #[arg(long, value_name = "N")]
    endpoint: Option<u16>,
    /// A pcapng file, or `-` for the standard output; by default, prints one line per packet
    #[arg(short, long, value_name = "FILE|-")]
    output: Option<PathBuf>,
    /// Packets to trace
    #[arg(long, value_name = "N")]
    count: Option<u64>,
    /// How long to trace
    #[arg(long, value_name = "S", value_parser = interval)]
    seconds: Option<Duration>,
    /// Bytes to keep of each packet: by default the header and the 64 bytes after it
    #[arg(long, value_name = "N", default_value_t = 88,
          value_parser = clap::value_parser!(u16).range(24..=280))]
    bytes: u16,
    /// One JSON object per packet, instead of a line
    #[arg(long, conflicts_with = "output")]
    json: bool,
}

/// The receiver of the packets.
enum Sink {
    Lines,
    Json,
    Pcapng(pcapng::Writer<Box<dyn Write>>),
}

/// Traces until its limits are reached.
///
/// # Errors
/// The process does not exist, may not be read, or has ended; the output cannot be written.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let found = dunlin_insight::of_process(args.pid)?;
    let mut sink = Sink::open(args)?;
    signal::watch()?;
    let mut traces: Vec<(Found, Trace)> = Vec::new();
    for found in found {
        let trace = Trace::begin(&found, args.endpoint, usize::from(args.bytes))?;
        traces.push((found, trace));
    }
    let outcome = follow(args, &mut traces, &mut sink);
    let lost: u64 = traces.iter().map(|(_, trace)| trace.lost()).sum();
    sink.finish()?;
    let written = match outcome {
        Ok(written) => written,
        // The file has all packets up to Ctrl-C, so this is a success.
        Err(error) if error.is::<signal::Interrupted>() && args.output.is_some() => return Ok(()),
        Err(error) => return Err(error),
    };
    if args.output.is_some() || lost > 0 {
        eprintln!("dunlin: {written} packets traced, {lost} lost because they came too fast");
    }
    Ok(())
}

/// Passes packets on until there are enough, or the time is over.
fn follow(args: &Args, traces: &mut [(Found, Trace)], sink: &mut Sink) -> anyhow::Result<u64> {
    let end = args.seconds.map(|span| Instant::now() + span);
    let mut word_due = Instant::now() + WORD_EVERY;
    let mut written = 0;
    loop {
        let mut taken = 0;
        for (_, trace) in &mut *traces {
            let mut packets = Vec::new();
            taken += trace.take(|packet| packets.push(packet))?;
            for packet in packets {
                if args.count.is_some_and(|count| written >= count) {
                    return Ok(written);
                }
                sink.write(&packet, trace.lost())?;
                written += 1;
            }
        }
        let now = Instant::now();
        if end.is_some_and(|end| now >= end) || args.count.is_some_and(|count| written >= count) {
            return Ok(written);
        }
        if now >= word_due {
            signal::check()?;
            word_due = now + WORD_EVERY;
            sink.flush()?;
            for (found, trace) in &mut *traces {
                if !found.path.exists() {
                    bail!("process {} has ended", args.pid);
                }
                trace.still_wanted()?;
            }
        }
        if taken == 0 {
            std::thread::sleep(PAUSE);
        }
    }
}

impl Sink {
    fn open(args: &Args) -> anyhow::Result<Self> {
        let out: Box<dyn Write> = match args.output.as_deref() {
            None if args.json => return Ok(Self::Json),
            None => return Ok(Self::Lines),
            Some(path) if path.as_os_str() == "-" => {
                let out = std::io::stdout();
                if out.is_terminal() {
                    bail!(
                        "pcapng is not for a terminal: give -o a file, or leave it out for lines"
                    );
                }
                Box::new(BufWriter::new(out))
            }
            Some(path) => {
                let file = File::create(path).with_context(|| path.display().to_string())?;
                Box::new(BufWriter::new(file))
            }
        };
        let bytes = u32::from(args.bytes);
        Ok(Self::Pcapng(pcapng::Writer::begin(out, bytes)?))
    }

    fn write(&mut self, packet: &Packet, lost: u64) -> anyhow::Result<()> {
        match self {
            Self::Lines => print(&(lines::line(packet) + "\n")),
            Self::Json => print(&(lines::json(packet) + "\n")),
            Self::Pcapng(writer) => Ok(writer.write(packet, lost)?),
        }
    }

    fn flush(&mut self) -> anyhow::Result<()> {
        if let Self::Pcapng(writer) = self {
            writer.flush()?;
        }
        Ok(())
    }

    fn finish(mut self) -> anyhow::Result<()> {
        self.flush()
    }
}

#[cfg(test)]
mod tests;
