//! Which calls are safe to repeat: a server is killed while it runs two calls, and another one
//! takes its place. The channel repeats the call whose method is idempotent. Neither it nor the
//! program can know whether the other call has had its effect, so the program decides. A call that
//! never left can always be made again.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::Context as _;
use dunlin::service::{Context, Postcard};
use dunlin::{Channel, Running, ServeError, Server, service};

#[service(codec = Postcard)]
trait Stock {
    /// Harmless if it runs twice, or late.
    #[method(1, idempotent)]
    fn price(article: String) -> u64;

    /// Takes one piece each time that it runs.
    #[method(2)]
    fn take(article: String) -> u64;
}

/// The first server hangs in each handler, the second one answers.
struct Shop {
    hangs: bool,
}

impl Shop {
    async fn work(&self, what: &str) {
        if self.hangs {
            println!("{what}");
            std::future::pending::<()>().await;
        }
    }
}

impl Stock for Shop {
    async fn price(&self, _: String, _: Context<'_>) -> u64 {
        self.work("price").await;
        120
    }

    async fn take(&self, _: String, _: Context<'_>) -> u64 {
        self.work("take").await;
        99
    }
}

fn start(at: SocketAddr, hangs: bool) -> Result<Running, ServeError> {
    let server = Server::builder().service(move |_| StockServer(Shop { hangs }));
    server.start(at)
}

fn main() -> anyhow::Result<()> {
    if std::env::args().nth(1).is_some() {
        // The first server, in a process of its own, until it is killed.
        let running = start("127.0.0.1:0".parse()?, true)?;
        println!("{}", running.address());
        loop {
            std::thread::park();
        }
    }
    let mut first = Command::new(std::env::current_exe()?)
        .arg("serve")
        .stdout(Stdio::piped())
        .spawn()?;
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_all().build()?;
    let done = runtime.block_on(calls(&mut first));
    let _ = first.kill();
    first.wait()?;
    done
}

async fn calls(first: &mut Child) -> anyhow::Result<()> {
    let output = first.stdout.take().context("its output is a pipe")?;
    let mut lines = BufReader::new(output).lines();
    let address = lines.next().context("it prints its address")??;
    let channel = Channel::builder().address(&*address).open()?;
    let stock = StockClient::over(channel);
    let lamp = "lamp".to_owned();
    let price = tokio::spawn(stock.price(&lamp));
    let take = tokio::spawn(stock.take(&lamp));
    // Both tasks have made their calls when this wait is over, and both handlers run then.
    tokio::time::sleep(Duration::from_millis(1)).await;
    for _ in 0..2 {
        lines.next().context("a handler runs")??;
    }
    first.kill()?;
    first.wait()?;
    let _second = start(address.parse()?, false)?;
    println!("price: {}", price.await??);
    match take.await? {
        Ok(left) => println!("take: {left} are left"),
        Err(error) => println!("take: did the handler run? {:?}", error.ran()),
    }

    // No server is there, so the call never leaves.
    let channel = Channel::builder().address("127.0.0.1:1");
    let nowhere = StockClient::over(channel.patience(Duration::ZERO).open()?);
    if let Err(error) = nowhere.take(&lamp).await {
        println!("take, without a server: did it run? {:?}", error.ran());
    }
    Ok(())
}
