//! The commands that do not measure: servers and clients to try, the simulator, and views of
//! running processes. Only a build with the feature `full` has them.

mod call;
mod config;
mod echo;
mod echo_server;
#[cfg(any(feature = "index", feature = "replica"))]
mod form;
mod headers;
mod health;
#[cfg(feature = "index")]
mod index;
mod info;
#[cfg(feature = "kv")]
mod kv;
mod list;
mod options;
mod ping;
#[cfg(any(feature = "kv", feature = "replica"))]
mod random;
mod reflect;
#[cfg(feature = "replica")]
mod replica;
#[cfg(feature = "sequencer")]
mod sequencer;
mod sim;
mod stats;
mod target;
mod top;
mod trace;
mod xdp_setup;

/// One of the commands, and its arguments.
#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// Lists every option with its value, source, unit, range and meaning
    Config(config::Args),
    /// Answers every request with its own bytes
    EchoServer(echo_server::Args),
    /// Times round trips to a server
    Ping(ping::Args),
    /// Asks a server whether it serves; the exit code is the answer
    Health(health::Args),
    /// Lists the services of a server, their methods and types
    List(list::Args),
    /// Calls a method of a server, with JSON
    Call(call::Args),
    /// Shows the features of this machine, and how to get the missing ones
    Info(info::Args),
    /// Serves an ordered index, or sends requests to such a server
    #[cfg(feature = "index")]
    Index(index::Args),
    /// Serves keys and values, or sends requests to such a server
    #[cfg(feature = "kv")]
    Kv(kv::Args),
    /// Serves memcached's clients, with memcached's flags
    #[cfg(feature = "kv")]
    Memcached(kv::memcached::Args),
    /// Runs a replica of a key-value store, or sends requests to its cluster
    #[cfg(feature = "replica")]
    Replica(replica::Args),
    /// Serves increasing numbers, each only once, or takes numbers from such a server
    #[cfg(feature = "sequencer")]
    Sequencer(sequencer::Args),
    /// Runs a scenario in the simulator
    Sim(sim::Args),
    /// Shows what a running process counts and measures
    Stats(stats::Args),
    /// Shows a running process on the terminal, refreshed
    Top(top::Args),
    /// Shows the packets of a running process, or writes them for Wireshark
    Trace(trace::Args),
    /// Opens AF_XDP sockets for processes without privilege
    XdpSetup(xdp_setup::Args),
}

/// Runs the command.
///
/// # Errors
/// The command's errors.
pub(crate) fn run(command: Command) -> anyhow::Result<()> {
    match command {
        Command::Config(args) => config::run(&args),
        Command::EchoServer(args) => echo_server::run(&args),
        Command::Ping(args) => ping::run(&args),
        Command::Health(args) => health::run(&args),
        Command::List(args) => list::run(&args),
        Command::Call(args) => call::run(&args),
        Command::Info(args) => info::run(&args),
        #[cfg(feature = "index")]
        Command::Index(args) => index::run(&args),
        #[cfg(feature = "kv")]
        Command::Kv(args) => kv::run(&args),
        #[cfg(feature = "kv")]
        Command::Memcached(args) => kv::memcached::run(args),
        #[cfg(feature = "replica")]
        Command::Replica(args) => replica::run(&args),
        #[cfg(feature = "sequencer")]
        Command::Sequencer(args) => sequencer::run(&args),
        Command::Sim(args) => sim::run(&args),
        Command::Stats(args) => stats::run(&args),
        Command::Top(args) => top::run(&args),
        Command::Trace(args) => trace::run(&args),
        Command::XdpSetup(args) => xdp_setup::run(&args),
    }
}
