//! What a child can be started as. A new role is a line in the enum and a line in `run`.

use clap::ValueEnum;

use super::Parent;
use crate::bench::{self, Seat, raw};
use crate::sys;

/// The hidden subcommand that starts a role.
pub(crate) const SUBCOMMAND: &str = "__role";

/// What a child does.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Role {
    /// Reads the clocks.
    Clock,
    /// Copies memory.
    Copy,
    /// Measures round trips through shared memory.
    ShmPing,
    /// Answers them.
    ShmEcho,
    /// Writes cells into a ring.
    RingWrite,
    /// Reads them, and counts.
    RingRead,
    /// Measures round trips through kernel UDP.
    UdpPing,
    /// Answers them.
    UdpEcho,
    /// Sends datagrams as fast as it can.
    UdpSend,
    /// Receives and counts them.
    UdpReceive,
    /// Sends packets to a process that sleeps.
    WakePing,
    /// Sleeps, and answers them.
    WakeEcho,
    /// Serves RPCs.
    Serve,
    /// Issues one RPC after the other.
    Ping,
    /// Issues many RPCs at a time, and perhaps serves as many.
    Issue,
    /// Issues RPCs over many sessions.
    ManySessions,
    /// Issues an RPC after a silence.
    AfterSilence,
    /// Loads a server, and then is silent.
    LoadThenSilence,
    /// Issues large requests.
    Bandwidth,
    /// Issues small RPCs, and large ones beside them.
    Mixed,
    /// Sends large messages over a TCP stream.
    TcpSend,
    /// Receives them.
    TcpReceive,
    /// Issues RPCs whose handlers are slow.
    SlowHandler,
    /// Issues and serves RPCs, with something switched off in turns.
    Factors,
    /// Runs RPCs with each of it off, under valgrind.
    FactorsCount,
    /// Serves by one of the faces.
    FaceServe,
    /// Calls by one.
    FaceCall,
    /// Makes a table, and measures look-ups in it.
    GoptLookups,
    /// Runs every form of a look-up once, under valgrind.
    GoptCount,
}

/// Arguments of the hidden subcommand.
#[derive(Debug, clap::Args)]
pub(crate) struct RoleArgs {
    role: Role,
    /// The processor to run on.
    #[arg(long)]
    cpu: Option<usize>,
    /// Run before all ordinary threads.
    #[arg(long)]
    first: bool,
}

impl Role {
    /// The role's name on the command line.
    pub(super) fn name(self) -> String {
        self.to_possible_value()
            .map_or_else(String::new, |value| value.get_name().to_owned())
    }

    fn run(self, parent: &Parent) -> anyhow::Result<()> {
        match self {
            Self::Clock => raw::clock::run(parent),
            Self::Copy => raw::copy::run(parent),
            Self::ShmPing => raw::shm_rtt::ping(parent),
            Self::ShmEcho => raw::shm_rtt::echo(parent),
            Self::RingWrite => raw::ring::write(parent),
            Self::RingRead => raw::ring::read(parent),
            Self::UdpPing => raw::udp_rtt::ping(parent),
            Self::UdpEcho => raw::udp_rtt::echo(parent),
            Self::UdpSend => raw::udp_rate::send(parent),
            Self::UdpReceive => raw::udp_rate::receive(parent),
            Self::WakePing => raw::wake::ping(parent),
            Self::WakeEcho => raw::wake::echo(parent),
            Self::Serve => bench::subject::server::run(parent),
            Self::Ping => bench::latency::ping(parent),
            Self::Issue => bench::rate::issue(parent),
            Self::ManySessions => bench::sessions::call(parent),
            Self::AfterSilence => bench::idle::call_after_silence(parent),
            Self::LoadThenSilence => bench::idle::load_then_silence(parent),
            Self::Bandwidth => bench::bandwidth::send(parent),
            Self::Mixed => bench::mixed::call(parent),
            Self::TcpSend => bench::bandwidth::tcp::send(parent),
            Self::TcpReceive => bench::bandwidth::tcp::receive(parent),
            Self::SlowHandler => bench::slow_handler::call(parent),
            Self::Factors => bench::factors::pair::run(parent),
            Self::FactorsCount => bench::factors::instructions::run(parent),
            Self::FaceServe => bench::faces::serve(parent),
            Self::FaceCall => bench::faces::call(parent),
            Self::GoptLookups => bench::gopt::measure::run(parent),
            Self::GoptCount => bench::gopt::instructions::run(parent),
        }
    }
}

/// What `main` does in a child: the role, until it ends or the parent kills it. What goes wrong
/// is reported to the parent.
///
/// # Errors
/// The parent could not be told.
pub(crate) fn run_role(args: &RoleArgs) -> anyhow::Result<()> {
    sys::die_with_parent()?;
    let parent = Parent;
    let seat = Seat {
        cpu: args.cpu,
        first: args.first,
    };
    let seated = seat.take().map_err(anyhow::Error::from);
    match seated.and_then(|()| args.role.run(&parent)) {
        Ok(()) => Ok(()),
        Err(error) => parent.fail(&error),
    }
}
