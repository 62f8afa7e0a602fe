//! The processes of all experiments. A new role is a line in the enum and a line in `run`.

use clap::ValueEnum;
use harness::process::{self, Parent};

use crate::bench::{self, raw};

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
    /// Exchanges requests and answers over two rings.
    Exchange,
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
}

impl process::Role for Role {
    fn run(self, parent: &Parent) -> anyhow::Result<()> {
        match self {
            Self::Clock => raw::clock::run(parent),
            Self::Copy => raw::copy::run(parent),
            Self::ShmPing => raw::shm_rtt::ping(parent),
            Self::ShmEcho => raw::shm_rtt::echo(parent),
            Self::RingWrite => raw::ring::write(parent),
            Self::RingRead => raw::ring::read(parent),
            Self::Exchange => raw::exchange::run(parent),
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
        }
    }
}
