//! Answers greetings until it is stopped. Run it, then `hello_client` in another terminal.
use dunlin::{Auto, Nexus, ReqType, Rpc};

const GREET: ReqType = ReqType(1);

fn main() -> anyhow::Result<()> {
    let address = std::env::args().nth(1);
    let nexus = Nexus::bind(address.as_deref().unwrap_or("127.0.0.1:31850"))?;
    let mut rpc: Rpc<Auto, u64> = nexus.endpoint(0)?;
    rpc.on(GREET, |greeted, request, cx| {
        *greeted += 1;
        let name = request.data().escape_ascii();
        let answer = format!("hello {name}, you are number {greeted}");
        request.reply_bytes(cx, answer.as_bytes());
    });
    println!("listening at {}", nexus.address());
    loop {
        rpc.run_once();
    }
}
