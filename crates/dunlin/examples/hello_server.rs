//! Answers greetings. Run it, then `hello_client` in another terminal.
use dunlin::{Nexus, ReqType, Rpc, Udp};

const GREET: ReqType = ReqType(1);

fn main() -> anyhow::Result<()> {
    let nexus = Nexus::bind("127.0.0.1:31850")?;
    let mut rpc: Rpc<Udp, u64> = nexus.endpoint(0)?;
    rpc.on(GREET, |greeted, request, cx| {
        *greeted += 1;
        let answer = format!(
            "hello {}, you are number {greeted}",
            request.data().escape_ascii()
        );
        request.reply_bytes(cx, answer.as_bytes());
    });
    println!("listening at {}", nexus.address());
    loop {
        rpc.run_once();
    }
}
