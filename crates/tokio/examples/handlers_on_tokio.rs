//! A server whose handlers run on a tokio runtime, in front of another server that they call: typed
//! clients in tasks, handlers that await timers and calls, and a drain that loses no call.

use std::time::Duration;

use dunlin::service::{Context, Postcard};
use dunlin::{Channel, Running, Server, service};
use dunlin_tokio::OnTokio;
use tokio::runtime::Handle;

#[service(codec = Postcard, send)]
trait Prices {
    #[method(1, idempotent)]
    fn cents(article: String) -> Result<u64, String>;
}

#[service(codec = Postcard, send)]
trait Carts {
    #[method(1, idempotent)]
    fn total(articles: Vec<String>) -> Result<u64, String>;
}

/// Finds the price of an article within 2 ms.
struct PriceList;

impl PricesSend for PriceList {
    async fn cents(&self, article: String, _: Context<'_>) -> Result<u64, String> {
        tokio::time::sleep(Duration::from_millis(2)).await;
        match &*article {
            "apple" => Ok(40),
            "bread" => Ok(350),
            other => Err(format!("no {other} today")),
        }
    }
}

/// Asks the other server for all prices of a cart at once.
struct Adder {
    prices: PricesClient<Channel>,
}

impl CartsSend for Adder {
    async fn total(&self, articles: Vec<String>, context: Context<'_>) -> Result<u64, String> {
        // A call under the context ends at the deadline of this request.
        let calls = articles
            .iter()
            .map(|it| self.prices.cents(it).under(&context));
        let calls: Vec<_> = calls.map(tokio::spawn).collect();
        let mut total = 0;
        for call in calls {
            let price = call.await.map_err(|error| error.to_string())?;
            total += price.map_err(|failure| failure.to_string())?;
        }
        Ok(total)
    }
}

fn start_prices(runtime: &Handle) -> anyhow::Result<Running> {
    let runtime = runtime.clone();
    let server = Server::builder().service(move |_| PricesSendServer(PriceList).on(&runtime));
    Ok(server.start("127.0.0.1:0")?)
}

fn start_carts(runtime: &Handle, prices: &Running) -> anyhow::Result<Running> {
    let channel = Channel::builder().address(prices.address().to_string());
    let prices = PricesClient::over(channel.open()?);
    let runtime = runtime.clone();
    // Two threads receive requests; the handlers of both share the runtime's threads.
    let server = Server::builder().threads(2).service(move |_| {
        let prices = prices.clone();
        CartsSendServer(Adder { prices }).on(&runtime)
    });
    Ok(server.start("127.0.0.1:0")?)
}

fn main() -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let prices = start_prices(runtime.handle())?;
    let carts = start_carts(runtime.handle(), &prices)?;
    let channel = Channel::builder().address(carts.address().to_string());
    let client = CartsClient::over(channel.open()?);
    runtime.block_on(async {
        for articles in [&["apple", "bread", "apple"][..], &["apple", "caviar"]] {
            let articles: Vec<String> = articles.iter().map(|&it| it.to_owned()).collect();
            let total = tokio::spawn(client.total(&articles).deadline(Duration::from_secs(5)));
            match total.await? {
                Ok(cents) => println!("{}: {cents} cents", articles.join(", ")),
                Err(failure) => println!("{}: {failure}", articles.join(", ")),
            }
        }
        let loaf = vec!["bread".to_owned()];
        let calls: Vec<_> = (0..100)
            .map(|_| tokio::spawn(client.total(&loaf)))
            .collect();
        for call in calls {
            assert_eq!(call.await?.ok(), Some(350));
        }
        println!("100 carts at once");
        for server in [carts, prices] {
            let drained = dunlin_tokio::drain(server).await;
            println!("drained, {} requests cut off", drained.cut_off);
        }
        anyhow::Ok(())
    })
}
