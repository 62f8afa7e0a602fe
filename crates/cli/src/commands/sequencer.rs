//! `dunlin sequencer`: numbers that increase and are given once. `serve` runs a server until
//! Ctrl-C; `next` takes numbers, and `status` shows the state of a server.

mod client;
mod serve;

const EXAMPLES: &str = "\
Examples:
  dunlin sequencer serve --dir numbers             at 127.0.0.1:31850
  dunlin sequencer next orders --create
  dunlin sequencer next orders --count 1000        a range: its first number and its last
  dunlin sequencer status
  dunlin sequencer serve --help                    more examples";

/// The arguments of `dunlin sequencer`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Gives numbers until Ctrl-C
    Serve(serve::Args),
    /// Takes numbers of a sequence
    Next(client::NextArgs),
    /// Shows the state of a server and its sequences
    Status(client::StatusArgs),
}

/// Runs the command.
///
/// # Errors
/// The command's errors.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    match &args.command {
        Command::Serve(args) => serve::run(args),
        Command::Next(args) => client::next(args),
        Command::Status(args) => client::status(args),
    }
}
