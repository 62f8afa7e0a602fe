//! A server that ends cleanly on Ctrl-C: the running handler finishes, its client gets the answer,
//! and later calls are refused before a handler gets them. A thread of this program is the client,
//! and a command sends the signal in place of a terminal.

use std::net::TcpListener;
use std::process::Command;
use std::time::Duration;

use dunlin::service::{Context, Postcard};
use dunlin::{Caller, Channel, Ran, Server, service};

#[service(codec = Postcard)]
trait Squares {
    #[method(1)]
    fn square(number: u64) -> u64;
}

struct Slow(Caller);

impl Squares for Slow {
    async fn square(&self, number: u64, _: Context<'_>) -> u64 {
        println!("the handler begins");
        self.0.sleep(Duration::from_millis(500)).await;
        number * number
    }
}

fn main() -> anyhow::Result<()> {
    // A port that is free now. A server of your own has one that its clients know.
    let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let client = std::thread::spawn(move || call(&address.to_string()));
    // Returns after Ctrl-C, when the drain is over.
    let drained = Server::builder()
        .service(|thread| SquaresServer(Slow(thread.caller())))
        .serve(address)?;
    client.join().expect("the client does not panic")?;
    println!("{} requests finished during the drain", drained.finished);
    println!("{} were cut off", drained.cut_off);
    Ok(())
}

fn call(address: &str) -> anyhow::Result<()> {
    let channel = Channel::builder().address(address).open()?;
    let client = SquaresClient::over(channel);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let slow = tokio::spawn(client.square(&12));
        tokio::time::sleep(Duration::from_millis(250)).await;
        println!("Ctrl-C");
        let pid = std::process::id().to_string();
        let sent = Command::new("kill").args(["-INT", &pid]).status()?;
        anyhow::ensure!(sent.success(), "the signal was not sent");
        tokio::time::sleep(Duration::from_millis(100)).await;
        // No other server is there, and the call does not wait for one.
        let late = client.square(&13).deadline(Duration::from_millis(50));
        let late = late.await.expect_err("the server drains");
        println!("a later call did not run: {}", late.ran() == Ran::No);
        println!("the square is {}", slow.await??);
        anyhow::Ok(())
    })
}
