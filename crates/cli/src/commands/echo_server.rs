//! `dunlin echo-server`: answers each request with its own bytes, until Ctrl-C. `dunlin ping` is
//! its client, and a first program can use it as a server.

use std::net::SocketAddr;
use std::ops::AddAssign;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Instant;

use anyhow::{anyhow, bail};
use dunlin::settings::Configurable;
use dunlin::{Nexus, NexusError, Rpc, SessionEvent, Settings};
use serde_json::json;

use crate::commands::echo::{ECHO, EndpointArgs, over};
use crate::say::print;
use harness::signal;

const EXAMPLES: &str = "\
Examples:
  dunlin echo-server                              at 127.0.0.1:31850
  dunlin echo-server 0.0.0.0:31850                for other hosts, too
  dunlin echo-server 127.0.0.1:0                  at any free port
  dunlin echo-server --endpoints 4 --idle spin    four threads, each with a core of its own
  dunlin echo-server --transport udp --set udp.gro=off --file dunlin.toml

The server answers requests of type 0x7ec0, of any size up to `endpoint.max_message`. `dunlin ping
--endpoint N` reaches its endpoint N. Ctrl-C ends the server, which then prints its counts.

Exit codes: 0, Ctrl-C ended it; 1, it cannot listen or serve; 2, an option or the usage is wrong.";

/// The arguments of `dunlin echo-server`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Where to listen; by default, the address in `nexus.listen`
    #[arg(value_name = "HOST:PORT")]
    address: Option<String>,
    /// Endpoints, each with a thread
    #[arg(long, value_name = "N", default_value = "1",
          value_parser = clap::value_parser!(u16).range(1..=1024))]
    endpoints: u16,
    #[command(flatten)]
    endpoint: EndpointArgs,
}

/// Counts of an endpoint that serves.
#[derive(Clone, Copy, Debug, Default)]
struct Served {
    requests: u64,
    bytes: u64,
    sessions: u64,
}

impl AddAssign for Served {
    fn add_assign(&mut self, other: Self) {
        self.requests += other.requests;
        self.bytes += other.bytes;
        self.sessions += other.sessions;
    }
}

/// Serves until a signal arrives.
///
/// # Errors
/// If it cannot listen there, an endpoint cannot be opened, or an option is wrong.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let mut settings = args.endpoint.settings()?;
    if let Some(address) = &args.address {
        settings = settings.with_from("HOST:PORT", "nexus.listen", address)?;
    }
    signal::watch()?;
    let nexus = bind(&settings)?;
    over!(args.endpoint.transport, serve(args, &settings, &nexus))
}

/// Clients must know the port, so the server takes the requested port or none.
fn bind(settings: &Settings) -> anyhow::Result<Nexus> {
    let listen = settings.listen();
    let bound = settings.nexus().bind(listen.as_str());
    bound.map_err(|error| match &error {
        NexusError::Listen { address, source }
            if source.kind() == std::io::ErrorKind::AddrInUse =>
        {
            let (ip, port) = (address.ip(), address.port());
            let host = if ip.is_ipv6() {
                format!("[{ip}]")
            } else {
                ip.to_string()
            };
            anyhow!(
                "{address} is in use by another program; `ss -ltnp 'sport = :{port}'` says by \
                 which. Stop it, or let the system choose a port: dunlin echo-server {host}:0"
            )
        }
        _ => anyhow!(error),
    })
}

/// Runs one thread for each endpoint; the calling thread waits for the signal that ends all of
/// them.
fn serve<T: Configurable>(args: &Args, settings: &Settings, nexus: &Nexus) -> anyhow::Result<()> {
    let begin = Instant::now();
    let mut all = Vec::new();
    thread::scope(|scope| {
        let (ready, opened) = channel();
        let threads: Vec<_> = (0..args.endpoints)
            .map(|index| {
                let ready = ready.clone();
                scope.spawn(move || echo::<T>(settings, nexus, index, &ready))
            })
            .collect();
        drop(ready);
        let greeted =
            wait_open(&opened, args.endpoints).and_then(|()| greet(args, nexus.address()));
        if greeted.is_err() {
            signal::stop();
        }
        for thread in threads {
            all.push(
                thread
                    .join()
                    .map_err(|_| anyhow!("a thread has panicked"))?,
            );
        }
        greeted
    })?;
    report(args, &all, begin)
}

/// Waits until each endpoint is open.
fn wait_open(opened: &Receiver<anyhow::Result<()>>, endpoints: u16) -> anyhow::Result<()> {
    for _ in 0..endpoints {
        match opened.recv() {
            Ok(result) => result?,
            Err(_) => bail!("an endpoint's thread has ended"),
        }
    }
    Ok(())
}

/// Serves with one endpoint until a signal arrives.
fn echo<T: Configurable>(
    settings: &Settings,
    nexus: &Nexus,
    index: u16,
    ready: &Sender<anyhow::Result<()>>,
) -> Served {
    let built = settings
        .endpoint::<T>(nexus)
        .index(index)
        .build(Served::default());
    let mut rpc: Rpc<T, Served> = match built {
        Ok(rpc) => rpc,
        Err(error) => {
            let context = format!("endpoint {index}");
            // The receiver is gone if another endpoint has already failed.
            let _ = ready.send(Err(anyhow!(error).context(context)));
            return Served::default();
        }
    };
    rpc.on(ECHO, |served, request, cx| {
        let data = request.data();
        served.requests += 1;
        served.bytes += data.len() as u64;
        request.reply_bytes(cx, data);
    });
    rpc.on_session(|served, event, _| {
        served.sessions += u64::from(matches!(event, SessionEvent::Accepted(_)));
    });
    let _ = ready.send(Ok(()));
    rpc.run_until(|_| signal::check().is_err());
    *rpc.app()
}

fn greet(args: &Args, address: SocketAddr) -> anyhow::Result<()> {
    let (endpoints, over) = (args.endpoints, args.endpoint.transport.name());
    if args.endpoint.json {
        let line = json!({
            "listening": address.to_string(),
            "transport": over,
            "endpoints": endpoints,
            "request_type": ECHO.0,
        });
        return print(&format!("{line}\n"));
    }
    let s = if endpoints == 1 { "" } else { "s" };
    print(&format!(
        "listening at {address}, {endpoints} endpoint{s} over {over}\n\
         to ping it: dunlin ping {}\n\
         Ctrl-C ends it\n",
        as_seen(address, args)
    ))
}

/// The address and flags that a ping needs.
fn as_seen(address: SocketAddr, args: &Args) -> String {
    let target = match address.ip().is_unspecified() {
        true => format!(
            "HOST:{}, HOST being a name or address of this host",
            address.port()
        ),
        false => address.to_string(),
    };
    format!("{}{target}", args.endpoint.transport.flag_of_client())
}

fn report(args: &Args, all: &[Served], begin: Instant) -> anyhow::Result<()> {
    let mut total = Served::default();
    for served in all {
        total += *served;
    }
    let seconds = begin.elapsed().as_secs_f64();
    if args.endpoint.json {
        let line = json!({
            "served": total.requests,
            "bytes": total.bytes,
            "sessions": total.sessions,
            "seconds": seconds,
            "by_endpoint": all.iter().map(|served| served.requests).collect::<Vec<_>>(),
        });
        return print(&format!("{line}\n"));
    }
    let Served {
        requests,
        bytes,
        sessions,
    } = total;
    let mut text = format!(
        "\nserved {requests} requests of {bytes} bytes together, over {sessions} sessions, \
         in {seconds:.1} s\n"
    );
    if all.len() > 1 {
        for (index, served) in all.iter().enumerate() {
            text += &format!("  endpoint {index}: {} requests\n", served.requests);
        }
    }
    print(&text)
}
