//! `dunlin replica`: the replicated key-value store. `serve` runs a replica until Ctrl-C;
//! `bootstrap` makes a cluster of replicas; each other command asks one replica for its state, or
//! performs one operation on a cluster.

mod client;
mod cluster;
mod serve;

const EXAMPLES: &str = "\
Examples, in four terminals:
  dunlin replica serve --listen 127.0.0.1:7101
  dunlin replica serve --listen 127.0.0.1:7102
  dunlin replica serve --listen 127.0.0.1:7103
  dunlin replica bootstrap 127.0.0.1:7101 127.0.0.1:7102 127.0.0.1:7103

  dunlin replica put name dunlin --cluster 127.0.0.1:7101,127.0.0.1:7102,127.0.0.1:7103
  dunlin replica get name --cluster 127.0.0.1:7101,127.0.0.1:7102,127.0.0.1:7103
  dunlin replica status 127.0.0.1:7101 127.0.0.1:7102 127.0.0.1:7103

The log is in memory. A write is kept while a majority of the processes lives; a process that starts
again is another replica, and the cluster goes on without it.";

/// The arguments of `dunlin replica`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Runs a replica until Ctrl-C
    Serve(serve::Args),
    /// Makes a cluster of one, three, five or seven replicas that belong to none
    Bootstrap(cluster::Args),
    /// Shows the state of replicas
    Status(cluster::Args),
    #[command(flatten)]
    Client(client::Command),
}

/// Runs the command.
///
/// # Errors
/// Those of the command.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    match &args.command {
        Command::Serve(args) => serve::run(args),
        Command::Bootstrap(args) => cluster::bootstrap(args),
        Command::Status(args) => cluster::status(args),
        Command::Client(command) => client::run(command),
    }
}
