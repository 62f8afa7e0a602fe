//! `dunlin kv`: the key-value service. `serve` runs a server until Ctrl-C; each other command
//! performs one operation on a running server, or copies all items. Only `serve`, `dump` and `load`
//! handle signals: another command that is killed while it waits for the server leaves nothing to
//! clean up.

mod client;
mod dump;
mod load;
pub(super) mod memcached;
mod serve;
mod server;
mod shell;
mod show;
mod source;

const EXAMPLES: &str = "\
Examples:
  dunlin kv serve                                 a cache of 1 GiB at 127.0.0.1:31850
  dunlin kv set name dunlin --ttl 60
  dunlin kv get name
  dunlin kv incr visits
  dunlin kv stats --server 127.0.0.1:31850
  dunlin kv dump items.txt
  dunlin kv load --from 127.0.0.1:11211           copies a running memcached
  dunlin kv shell                                 many commands, one per line
  dunlin kv serve --help                          more examples";

/// The arguments of `dunlin kv`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Serves keys and values until Ctrl-C
    Serve(serve::Args),
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
        Command::Client(command) => client::run(command),
    }
}
