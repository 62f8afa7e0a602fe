//! Greets the server of `hello_server`.
use dunlin::{Auto, Done, Nexus, ReqType, Rpc, Tag};

const GREET: ReqType = ReqType(1);

fn main() -> anyhow::Result<()> {
    let server = std::env::args().nth(1);
    let nexus = Nexus::bind("127.0.0.1:0")?;
    let mut rpc: Rpc<Auto, Option<Done>> = nexus.endpoint(None)?;
    rpc.on_completion(|last, done, _| *last = Some(done));
    let session = rpc.connect_blocking(server.as_deref().unwrap_or("127.0.0.1:31850"))?;
    let (request, response) = (rpc.cx().copy(b"world")?, rpc.buf(64)?);
    rpc.call(session, GREET, request, response, Tag(0))?;
    rpc.run_until(|rpc| rpc.app().is_some());
    let done = rpc.app_mut().take().expect("the loop waited for it");
    done.result?;
    println!("{}", String::from_utf8_lossy(done.response.data()));
    Ok(())
}
