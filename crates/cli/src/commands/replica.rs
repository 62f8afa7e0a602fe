//! `dunlin replica`: the replicated key-value store. `serve` runs a replica until Ctrl-C;
//! `bootstrap` makes a cluster of replicas; each other command asks one replica for its state, or
//! performs one operation on a cluster.

mod backup;
mod client;
mod cluster;
mod members;
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

The log is in memory: a write is kept while a majority of the processes lives; a restarted process
is a new replica, and the cluster continues without the old one. With `serve --disk DIR`, an
answered write survives the end of all processes, and each restarted process is the same replica.";

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
    /// Makes a cluster of one, three, five or seven replicas that belong to no cluster
    Bootstrap(cluster::Args),
    /// Shows the state of replicas
    Status(cluster::Args),
    /// Makes another replica the leader
    TransferLeader(members::TransferArgs),
    /// Lets a replica without a cluster join one
    Join(members::ChangeArgs),
    /// Lets a member leave its cluster
    Leave(members::ChangeArgs),
    /// Has replicas drop the part of their logs that their items contain
    Snapshot(cluster::Args),
    /// Writes the items of a stopped replica into a file
    Backup(backup::BackupArgs),
    /// Makes a directory for a replica of a new cluster, from a backup
    Restore(backup::RestoreArgs),
    #[command(flatten)]
    Client(client::Command),
}

/// Runs the command.
///
/// # Errors
/// The command's errors.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    match &args.command {
        Command::Serve(args) => serve::run(args),
        Command::Bootstrap(args) => cluster::bootstrap(args),
        Command::Status(args) => cluster::status(args),
        Command::TransferLeader(args) => members::transfer(args),
        Command::Join(args) => members::join(args),
        Command::Leave(args) => members::leave(args),
        Command::Snapshot(args) => cluster::snapshot(args),
        Command::Backup(args) => backup::backup(args),
        Command::Restore(args) => backup::restore(args),
        Command::Client(command) => client::run(command),
    }
}
