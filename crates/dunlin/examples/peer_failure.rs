//! A server dies in the middle of requests. Each of them ends with an error in time; none hangs.
//! When a new server listens at the address, the client connects again.
//!
//! The program starts itself as the server, and kills that process without warning (SIGKILL).

use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use dunlin::{
    Auto, DeferredRequest, Done, Nexus, Ran, ReqType, Rpc, RpcError, Session, SessionEvent, Tag,
};

const ECHO: ReqType = ReqType(1);
/// A request that the server never answers, so it is in flight when the server dies.
const WAIT: ReqType = ReqType(2);

/// The client finds a dead peer within this time. A shorter time finds it sooner, but is more
/// likely to fail a live process that the kernel did not schedule for a while.
const FAILURE_TIMEOUT: Duration = Duration::from_millis(800);

fn main() -> anyhow::Result<()> {
    if let Some(address) = std::env::args().nth(1) {
        return serve(address.parse()?);
    }
    let nexus = Nexus::builder()
        .failure_timeout(FAILURE_TIMEOUT)
        .bind("127.0.0.1:0")?;
    let mut rpc: Rpc<Auto, Client> = nexus.endpoint(Client::default())?;
    rpc.on_completion(|client, done, _| client.ended.push(done));
    rpc.on_session(|_, event, _| {
        if let SessionEvent::Closed { reason, .. } = event {
            println!("the session has ended: {reason}");
        }
    });

    let first = Server::start("127.0.0.1:0")?;
    let address = first.address;
    let session = rpc.connect_blocking(address)?;
    call(&mut rpc, session, ECHO)?;
    let ended = wait_for(&mut rpc, 1)?;
    anyhow::ensure!(ended[0].result.is_ok(), "the server answers");

    let waiting = 5;
    for _ in 0..waiting {
        call(&mut rpc, session, WAIT)?;
    }
    // The requests must be in flight, not still in this process.
    rpc.run_for(Duration::from_millis(20));
    let killed = Instant::now();
    drop(first);
    let ended = wait_for(&mut rpc, waiting)?;
    println!(
        "{waiting} requests ended {:?} after the kill",
        killed.elapsed()
    );
    anyhow::ensure!(
        killed.elapsed() < FAILURE_TIMEOUT + Duration::from_millis(500),
        "too late"
    );
    let failed = |done: &Done| done.result == Err(RpcError::PeerFailed(Ran::Unknown));
    anyhow::ensure!(ended.iter().all(failed), "with another error");

    // A session ends with its server process. The new server does not know the old session, so no
    // request can run twice. The client opens a new session and decides which requests to repeat.
    let _second = Server::start(&address.to_string())?;
    let session = rpc.connect_blocking(address)?;
    call(&mut rpc, session, ECHO)?;
    let ended = wait_for(&mut rpc, 1)?;
    anyhow::ensure!(ended[0].result.is_ok(), "the new server answers");
    println!("connected to the new server at {address}");
    Ok(())
}

#[derive(Default)]
struct Client {
    ended: Vec<Done>,
}

fn call(rpc: &mut Rpc<Auto, Client>, session: Session, kind: ReqType) -> anyhow::Result<()> {
    let (request, response) = (rpc.cx().copy(b"hello")?, rpc.buf(8)?);
    rpc.call(session, kind, request, response, Tag(0))?;
    Ok(())
}

/// Runs until `count` calls have ended.
fn wait_for(rpc: &mut Rpc<Auto, Client>, count: usize) -> anyhow::Result<Vec<Done>> {
    let begin = Instant::now();
    while rpc.app().ended.len() < count {
        rpc.run_once();
        anyhow::ensure!(begin.elapsed() < Duration::from_secs(10), "a request hangs");
    }
    Ok(std::mem::take(&mut rpc.app_mut().ended))
}

fn serve(address: SocketAddr) -> anyhow::Result<()> {
    // The address is the server's name: another port would be another server.
    let nexus = Nexus::builder().bind(address)?;
    let mut rpc: Rpc<Auto, Vec<DeferredRequest>> = nexus.endpoint(Vec::new())?;
    rpc.on(ECHO, |_, request, cx| {
        let data = request.data();
        request.reply_bytes(cx, data);
    });
    rpc.on(WAIT, |held, request, cx| held.push(request.defer(cx)));
    println!("{}", nexus.address());
    std::io::stdout().flush()?;
    loop {
        rpc.run_once();
    }
}

/// A server process; killed when dropped.
struct Server {
    process: Child,
    address: SocketAddr,
}

impl Server {
    fn start(address: &str) -> anyhow::Result<Self> {
        let mut process = Command::new(std::env::current_exe()?)
            .arg(address)
            .stdout(Stdio::piped())
            .spawn()?;
        let output = process.stdout.take().expect("it was piped");
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line)?;
        let address = line.trim().parse()?;
        Ok(Self { process, address })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // `kill` fails only if the process has ended already, which does no harm.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
