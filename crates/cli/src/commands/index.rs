//! `dunlin index`: an ordered index in memory. `serve` runs a server until Ctrl-C; each other
//! command performs one operation on a running server, or copies all items.

mod client;
mod serve;

const EXAMPLES: &str = "\
Examples:
  dunlin index serve                             at 127.0.0.1:31850
  dunlin index put name dunlin
  dunlin index get name
  dunlin index scan --from a --to b --limit 10
  dunlin index count --from a
  dunlin index dump items.index
  dunlin index serve --help                      more examples";

/// The arguments of `dunlin index`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Serves an index until Ctrl-C
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
