//! `dunlin top`: a running process on the terminal, refreshed: endpoints, their rates and times,
//! the busiest sessions, and drops with their reasons (design §11).

mod model;
mod view;

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use anyhow::Context;
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use crate::commands::stats::{Opened, Target, interval};
use crate::misuse::Misuse;
use harness::signal;
use model::Model;

const EXAMPLES: &str = "\
Examples:
  dunlin top                      the only process of this host that can be read
  dunlin top 4711                 one of several
  dunlin top 10.0.0.7:31850 --interval 2

Keys: up and down choose an endpoint or a session, Tab chooses the table, `s` changes the sort key,
`r` reverses the order, the space bar freezes the picture, `q` quits.
Without a terminal, use `dunlin stats 4711 --watch`.

Exit codes: 0, it was ended with `q`; 1, the process cannot be read, or has ended; 2, wrong
usage or no terminal; 130, Ctrl-C.";

/// The arguments of `dunlin top`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// A process by its number, or by the address of its nexus
    #[arg(value_name = "PID|HOST:PORT")]
    target: Option<Target>,
    /// Time between two readings
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = interval)]
    interval: Duration,
}

/// A request of the user, made with a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Wish {
    /// Draw again after a change.
    Draw,
    /// End the command.
    Quit,
    /// Ctrl-C.
    Interrupt,
}

/// Shows a process until the user ends it.
///
/// # Errors
/// There is no terminal ([`Misuse`]), or the process cannot be read or has ended.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    if !std::io::stdout().is_terminal() || !std::io::stdin().is_terminal() {
        let what =
            "top needs a terminal; use `dunlin stats PID --watch`, with --json for a program";
        return Err(Misuse(what.into()).into());
    }
    let target = match &args.target {
        Some(target) => target.clone(),
        None => only_process()?,
    };
    let mut opened = Opened::open(&target)?;
    let mut model = Model::new(opened.read()?);
    let mut terminal = ratatui::try_init().context("the terminal cannot be used")?;
    let outcome = follow(&mut terminal, &mut opened, &mut model, args.interval);
    ratatui::restore();
    outcome
}

/// The process that is shown if none is named.
fn only_process() -> anyhow::Result<Target> {
    let mut pids: Vec<u32> = dunlin_insight::all()
        .iter()
        .map(|found| found.pid)
        .collect();
    pids.dedup();
    match pids[..] {
        [pid] => Ok(Target::Process(pid)),
        [] => anyhow::bail!("no process of this user shows counters"),
        _ => {
            let pids: Vec<String> = pids.iter().map(u32::to_string).collect();
            let what = format!("choose one of the processes {}", pids.join(", "));
            Err(Misuse(what).into())
        }
    }
}

fn follow(
    terminal: &mut DefaultTerminal,
    opened: &mut Opened,
    model: &mut Model,
    interval: Duration,
) -> anyhow::Result<()> {
    let mut due = Instant::now() + interval;
    terminal.draw(|frame| view::draw(frame, model))?;
    loop {
        let left = due.saturating_duration_since(Instant::now());
        if event::poll(left)? {
            match wish(model, &event::read()?) {
                Some(Wish::Quit) => return Ok(()),
                Some(Wish::Interrupt) => return Err(signal::Interrupted.into()),
                Some(Wish::Draw) => {}
                None => continue,
            }
        } else {
            due = Instant::now() + interval;
            if !model.held {
                model.take(opened.read()?);
            }
        }
        terminal.draw(|frame| view::draw(frame, model))?;
    }
}

/// The request in an event, if there is one.
fn wish(model: &mut Model, event: &Event) -> Option<Wish> {
    match event {
        Event::Key(key) if key.kind != KeyEventKind::Release => press(model, *key),
        Event::Resize(..) => Some(Wish::Draw),
        _ => None,
    }
}

fn press(model: &mut Model, key: KeyEvent) -> Option<Wish> {
    match key.code {
        KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => {
            return Some(Wish::Interrupt);
        }
        KeyCode::Char('q') | KeyCode::Esc => return Some(Wish::Quit),
        KeyCode::Up => model.step(false),
        KeyCode::Down => model.step(true),
        KeyCode::Tab | KeyCode::Left | KeyCode::Right => model.other_table(),
        KeyCode::Char('s') => model.sort_by_next(),
        KeyCode::Char('r') => model.reverse(),
        KeyCode::Char(' ') => model.held = !model.held,
        _ => return None,
    }
    Some(Wish::Draw)
}

#[cfg(test)]
mod tests;
