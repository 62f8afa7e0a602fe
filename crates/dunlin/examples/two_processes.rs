//! Two processes on one host: the nexus finds that they share a kernel, and `Auto` takes shared
//! memory. With the server on another host, the same program runs over UDP.
//!
//! The program starts itself a second time as the server, which ends when its client has
//! disconnected.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use dunlin::{Auto, Done, Nexus, ReqType, Rpc, SessionEvent, Tag};

const PROCESS_ID: ReqType = ReqType(1);

fn main() -> anyhow::Result<()> {
    if std::env::args().nth(1).as_deref() == Some("server") {
        return serve();
    }
    let mut server = Command::new(std::env::current_exe()?)
        .arg("server")
        .stdout(Stdio::piped())
        .spawn()?;
    let mut address = String::new();
    let output = server.stdout.take().expect("it was piped");
    BufReader::new(output).read_line(&mut address)?;
    let asked = ask(address.trim());
    if asked.is_err() {
        // Without a client the server would wait forever.
        server.kill()?;
    }
    let ended = server.wait()?;
    asked?;
    anyhow::ensure!(ended.success(), "the server: {ended}");
    Ok(())
}

#[derive(Default)]
struct Server {
    clients: u32,
    had_one: bool,
}

fn serve() -> anyhow::Result<()> {
    // Port 0 is any free port. A real server has a port that its clients know.
    let nexus = Nexus::bind("127.0.0.1:0")?;
    let mut rpc: Rpc<Auto, Server> = nexus.endpoint(Server::default())?;
    rpc.on(PROCESS_ID, |_, request, cx| {
        request.reply_bytes(cx, &std::process::id().to_le_bytes());
    });
    // Both sides get events of sessions. The server gets them for clients that connect, leave or
    // die.
    rpc.on_session(|server, event, _| match event {
        SessionEvent::Accepted(_) => {
            server.clients += 1;
            server.had_one = true;
        }
        SessionEvent::Closed { .. } => server.clients -= 1,
        SessionEvent::Connected(_) => {}
    });
    println!("{}", nexus.address());
    std::io::stdout().flush()?;
    rpc.run_until(|rpc| rpc.app().had_one && rpc.app().clients == 0);
    Ok(())
}

fn ask(server: &str) -> anyhow::Result<()> {
    let nexus = Nexus::bind("127.0.0.1:0")?;
    let mut rpc: Rpc<Auto, Option<Done>> = nexus.endpoint(None)?;
    rpc.on_completion(|last, done, _| *last = Some(done));
    let session = rpc.connect_blocking(server)?;
    let (request, response) = (rpc.buf(0)?, rpc.buf(4)?);
    rpc.call(session, PROCESS_ID, request, response, Tag(0))?;
    rpc.run_until(|rpc| rpc.app().is_some());
    let done = rpc.app_mut().take().expect("the loop waited for it");
    done.result?;
    let (us, them) = (
        std::process::id(),
        u32::from_le_bytes(done.response.data().try_into()?),
    );
    println!("process {us} was answered by process {them}");
    anyhow::ensure!(us != them, "there should be two processes");
    // A clean end: the server gets `Disconnected` immediately, and need not time out.
    rpc.disconnect(session)?;
    Ok(())
}
