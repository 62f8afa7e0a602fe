//! A service whose messages come from `greeter.proto`, so that programs in other languages can
//! speak to it. A client and a server, each with a thread.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};

use dunlin::service::{Context, Failure, Prost};
use dunlin::{Auto, Cx, Local, Nexus, Rpc, Tasks, service};

/// The code that `build.rs` makes of `greeter.proto`.
mod messages {
    #![allow(
        missing_docs,
        unreachable_pub,
        reason = "the .proto file describes the messages"
    )]
    include!(concat!(env!("OUT_DIR"), "/greeter.rs"));
}

use messages::{Greeting, Name, Refusal};

#[service(codec = Prost)]
trait Greeter {
    /// Greets a user with a name.
    #[method(1)]
    fn greet(name: Name) -> Result<Greeting, Refusal>;
}

struct Polite;

impl GreeterPoll for Polite {
    fn greet(&mut self, it: Name, _: &mut Cx<'_>, _: Context<'_>) -> Result<Greeting, Refusal> {
        if it.name.is_empty() {
            let reason = "the name is empty".to_owned();
            return Err(Refusal { reason });
        }
        let line = format!("Hello, {}!", it.name);
        let times = usize::try_from(it.times.min(10)).unwrap_or_default();
        let lines = vec![line; times];
        Ok(Greeting { lines })
    }
}

fn main() -> anyhow::Result<()> {
    let (server, client) = (Nexus::bind("127.0.0.1:0")?, Nexus::bind("127.0.0.1:0")?);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let serving = scope.spawn(|| serve(&server, &stop));
        let asked = ask(&client, server.address());
        stop.store(true, Ordering::Relaxed);
        serving.join().expect("the server does not panic")?;
        asked
    })
}

fn serve(nexus: &Nexus, stop: &AtomicBool) -> anyhow::Result<()> {
    let mut rpc: Rpc<Auto, Polite> = nexus.endpoint(Polite)?;
    GreeterPoll::register(&mut rpc);
    rpc.run_until(|_| stop.load(Ordering::Relaxed));
    Ok(())
}

fn ask(nexus: &Nexus, address: SocketAddr) -> anyhow::Result<()> {
    let mut local: Local<Auto> = Local::new(nexus.endpoint(Tasks::default())?);
    let session = local.connect(address)?;
    local.block_on(|cx| async move {
        let greeter = GreeterClient::new(cx, session);
        let name = "world".to_owned();
        let greeting = greeter.greet(&Name { name, times: 2 }).await;
        let lines = greeting
            .map_err(|failure| anyhow::anyhow!("{failure:?}"))?
            .lines;
        anyhow::ensure!(lines == ["Hello, world!"; 2], "{lines:?}");
        println!("{}", lines.join("\n"));
        match greeter.greet(&Name::default()).await {
            Err(Failure::Method(refusal)) => println!("refused: {}", refusal.reason),
            other => anyhow::bail!("{other:?}"),
        }
        Ok(())
    })
}
