//! `dunlin info`: the features of this machine that Dunlin uses, and how to get the missing ones.
//! Dunlin runs without any of them; each line states the gain from its feature.

mod facts;
mod machine;
mod memory;
mod network;
mod past_kernel;
mod without_kernel;

use std::fmt::Write as _;

use crate::say::print;
use facts::{Fact, State};

const EXAMPLES: &str = "\
Examples:
  dunlin info
  dunlin info --json | jq -r 'select(.state == \"improve\") | .advice'

A line with `!` shows what could be better; the line below it, how. This command changes nothing.

Exit codes: 0, it was shown; 1, no transport works here; 2, wrong usage.";

/// The arguments of `dunlin info`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// One JSON object per line
    #[arg(long)]
    json: bool,
}

/// Prints the features of the machine.
///
/// # Errors
/// No transport can be opened, or the output is closed.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let groups = [
        ("machine", machine::look()),
        ("memory", memory::look()),
        ("network", network::look()),
        ("transports", network::try_transports()),
        ("past the kernel", past_kernel::look()),
        ("without the kernel", without_kernel::look()),
    ];
    let mut text = String::new();
    for (group, facts) in &groups {
        if args.json {
            json(group, facts, &mut text)?;
        } else {
            plain(group, facts, &mut text);
        }
    }
    print(&text)?;
    let works = |fact: &Fact| fact.state != State::Missing;
    anyhow::ensure!(
        groups[3].1.iter().any(works),
        "no transport works here; see above"
    );
    Ok(())
}

fn json(group: &str, facts: &[Fact], text: &mut String) -> serde_json::Result<()> {
    for fact in facts {
        let line = serde_json::json!({
            "group": group,
            "name": fact.name,
            "value": fact.value,
            "state": fact.state,
            "advice": fact.advice,
        });
        *text += &serde_json::to_string(&line)?;
        text.push('\n');
    }
    Ok(())
}

fn plain(group: &str, facts: &[Fact], text: &mut String) {
    let _ = writeln!(text, "{group}");
    for fact in facts {
        let mark = match fact.state {
            State::Good => ' ',
            State::Improve | State::Missing => '!',
        };
        let _ = writeln!(text, "{mark} {:<22} {}", fact.name, fact.value);
        if let Some(advice) = &fact.advice {
            let _ = writeln!(text, "{:25}-> {advice}", "");
        }
    }
}
