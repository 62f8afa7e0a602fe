//! A server that is replaced under load: a second one takes over, the first one drains, and a
//! client over a channel loses no call.

use std::time::Duration;

use dunlin::service::{Context, Postcard};
use dunlin::{Caller, Channel, Running, ServeError, Server, service};

#[service(codec = Postcard)]
trait Squares {
    #[method(1)]
    fn square(number: u64) -> u64;
}

struct Slow(Caller);

impl Squares for Slow {
    async fn square(&self, number: u64, _: Context<'_>) -> u64 {
        self.0.sleep(Duration::from_millis(5)).await;
        number * number
    }
}

fn start() -> Result<Running, ServeError> {
    Server::builder()
        .threads(2)
        .service(|thread| SquaresServer(Slow(thread.caller())))
        .start("127.0.0.1:0")
}

fn main() -> anyhow::Result<()> {
    let (first, second) = (start()?, start()?);
    let channel = Channel::builder()
        .address(first.address().to_string())
        .address(second.address().to_string())
        .open()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let squares = SquaresClient::over(channel);
        let calls = (1..=2000).map(|number| tokio::spawn(squares.square(&number)));
        let calls: Vec<_> = calls.collect();
        // `drain` returns when the handlers have answered all requests that they hold.
        let drains = tokio::task::spawn_blocking(|| first.drain());
        let mut sum = 0;
        for call in calls {
            sum += call.await??;
        }
        println!("the sum of 2000 squares is {sum}");
        println!("{} calls were cut off", drains.await?.cut_off);
        anyhow::Ok(())
    })
}
