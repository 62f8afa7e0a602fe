//! Greets the server of `hello_server`.
use dunlin::{Nexus, ReqType, Rpc, Tag, Udp};

const GREET: ReqType = ReqType(1);

fn main() -> anyhow::Result<()> {
    let server = std::env::args()
        .nth(1)
        .unwrap_or_else(|| "127.0.0.1:31850".into());
    let nexus = Nexus::bind("127.0.0.1:0")?;
    let mut rpc: Rpc<Udp, Option<String>> = nexus.endpoint(None)?;
    rpc.on_completion(|answer, done, _| {
        let text = String::from_utf8_lossy(done.response.data()).into_owned();
        *answer = Some(done.result.map_or_else(|error| error.to_string(), |_| text));
    });
    let session = rpc.connect_blocking(server)?;
    let (mut request, response) = (rpc.buf(5)?, rpc.buf(64)?);
    request.data_mut().copy_from_slice(b"world");
    rpc.call(session, GREET, request, response, Tag(0))?;
    rpc.run_until(|rpc| rpc.app().is_some());
    println!("{}", rpc.app().as_deref().unwrap_or_default());
    Ok(())
}
