//! `dunlin index serve`: threads with an endpoint each, which serve one index until Ctrl-C.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use anyhow::{Context, anyhow, bail};
use dunlin::index::{Index, Range, serve, snapshot};
use dunlin::settings::Configurable;
use dunlin::{Nexus, Rpc, Settings};
use harness::signal;
use serde_json::json;

use crate::commands::echo::{EndpointArgs, over};
use crate::say::print;

const EXAMPLES: &str = "\
Examples:
  dunlin index serve                                   one thread, at 127.0.0.1:31850
  dunlin index serve --threads 2 --workers 2 --idle spin
  dunlin index serve --load items.index --save items.index

Threads share the items. Gets and writes run in them, and scans in the workers. With --save, the
items are written to a file when Ctrl-C ends the server.

Exit codes: 0, Ctrl-C ended it; 1, it cannot listen, serve, load or save; 2, an option or the usage
is wrong.";

/// The arguments of `dunlin index serve`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Threads, each with an endpoint
    #[arg(long, value_name = "N", default_value = "1",
          value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: u16,
    /// Threads for scans
    #[arg(long, value_name = "N", default_value = "1",
          value_parser = clap::value_parser!(u16).range(1..=1024))]
    workers: u16,
    /// A snapshot whose items the index has at the start
    #[arg(long, value_name = "FILE")]
    load: Option<PathBuf>,
    /// Where to write a snapshot at the end
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Where to listen; by default, the address in `nexus.listen`
    #[arg(long, value_name = "HOST:PORT")]
    listen: Option<String>,
    #[command(flatten)]
    endpoint: EndpointArgs,
}

/// Serves until a signal arrives.
///
/// # Errors
/// It cannot listen there, a snapshot cannot be read or written, or an option is wrong.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    signal::watch()?;
    let mut settings = args.endpoint.settings()?;
    if let Some(address) = &args.listen {
        settings = settings.with_from("--listen", "nexus.listen", address)?;
    }
    let index = Index::new();
    if let Some(path) = &args.load {
        let loaded = snapshot::read_file(path, |key, value| index.put(key, value));
        loaded.with_context(|| format!("cannot load {}", path.display()))?;
    }
    let listen = settings.listen();
    let nexus = settings.nexus().workers(args.workers.into());
    let nexus = nexus.bind(listen.as_str()).with_context(|| {
        format!("cannot serve at {listen}; --listen 127.0.0.1:0 takes a port that is free")
    })?;
    over!(
        args.endpoint.transport,
        serve_all(args, &index, &settings, &nexus)
    )?;
    save(args, &index)
}

fn serve_all<T: Configurable>(
    args: &Args,
    index: &Index,
    settings: &Settings,
    nexus: &Nexus,
) -> anyhow::Result<()> {
    thread::scope(|scope| {
        let (tell, opened) = channel();
        for number in 0..args.threads {
            let tell = tell.clone();
            scope.spawn(move || serve_one::<T>(index, settings, nexus, number, &tell));
        }
        drop(tell);
        let greeted = wait_open(&opened, args.threads).and_then(|()| greet(args, nexus));
        if greeted.is_err() {
            signal::stop();
        }
        greeted
    })
}

/// Waits until each endpoint is open.
fn wait_open(opened: &Receiver<anyhow::Result<()>>, threads: u16) -> anyhow::Result<()> {
    for _ in 0..threads {
        match opened.recv() {
            Ok(result) => result?,
            Err(_) => bail!("an endpoint's thread has ended"),
        }
    }
    Ok(())
}

fn serve_one<T: Configurable>(
    index: &Index,
    settings: &Settings,
    nexus: &Nexus,
    number: u16,
    tell: &Sender<anyhow::Result<()>>,
) {
    let builder = settings.endpoint::<T>(nexus).index(number);
    let mut rpc: Rpc<T, Index> = match builder.build(index.clone()) {
        Ok(rpc) => rpc,
        Err(error) => {
            // The receiver is gone if another endpoint has already failed.
            let _ = tell.send(Err(anyhow!(error).context(format!("endpoint {number}"))));
            return;
        }
    };
    serve(&mut rpc, index);
    let _ = tell.send(Ok(()));
    rpc.run_until(|_| signal::check().is_err());
}

fn greet(args: &Args, nexus: &Nexus) -> anyhow::Result<()> {
    let (address, over) = (nexus.address(), args.endpoint.transport.name());
    let threads = args.threads;
    if args.endpoint.json {
        let line = json!({
            "listening": address.to_string(),
            "transport": over,
            "threads": threads,
            "workers": args.workers,
        });
        return print(&format!("{line}\n"));
    }
    let s = if threads == 1 { "" } else { "s" };
    print(&format!(
        "an index at {address}, {threads} thread{s} over {over}\n\
         to use it: dunlin index put name dunlin --server {address}\n\
         Ctrl-C ends it\n"
    ))
}

fn save(args: &Args, index: &Index) -> anyhow::Result<()> {
    let Some(path) = &args.save else {
        return Ok(());
    };
    let saved = snapshot::write_file(path, |writer| {
        let mut written = Ok(());
        index.scan(
            Range::ALL,
            dunlin::index::Direction::Forward,
            |key, value| {
                written = writer.add(key, value);
                written.is_ok()
            },
        );
        written
    });
    let count = saved.with_context(|| format!("cannot save {}", path.display()))?;
    match args.endpoint.json {
        true => print(&format!("{}\n", json!({ "saved": count }))),
        false => print(&format!("\nsaved {count} items in {}\n", path.display())),
    }
}
