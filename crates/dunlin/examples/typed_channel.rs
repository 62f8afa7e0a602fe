//! A typed client for a tokio program: tasks call a service over a channel, which finds the server
//! by its address, and connects again by itself.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use dunlin::service::{Context, Failure, Postcard};
use dunlin::{Auto, Channel, Cx, Nexus, Rpc, service};

#[service(codec = Postcard)]
trait Words {
    /// The method may run twice, so the channel repeats the call if the server fails during it.
    #[method(1, idempotent)]
    fn longest(text: String) -> Result<String, u32>;
}

struct Server;

impl WordsPoll for Server {
    fn longest(&mut self, text: String, _: &mut Cx<'_>, _: Context<'_>) -> Result<String, u32> {
        let words = text.split_whitespace();
        words
            .max_by_key(|word| word.len())
            .map(str::to_owned)
            .ok_or(404)
    }
}

fn main() -> anyhow::Result<()> {
    let nexus = Nexus::bind("127.0.0.1:0")?;
    let address = nexus.address().to_string();
    let stopped = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut rpc: Rpc<Auto, Server> = nexus.endpoint(Server).expect("it has descriptors");
            WordsPoll::register(&mut rpc);
            rpc.run_until(|_| stopped.load(Ordering::Relaxed));
        });
        let result = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(anyhow::Error::from)
            .and_then(|runtime| runtime.block_on(ask(address)));
        stopped.store(true, Ordering::Relaxed);
        result
    })
}

async fn ask(address: String) -> anyhow::Result<()> {
    let words = WordsClient::over(Channel::builder().address(address).open()?);
    let texts = ["a call over a channel", "every task has a clone", ""];
    let tasks = texts.map(|text| {
        let longest = words.longest(&text.to_owned());
        tokio::spawn(longest.deadline(Duration::from_secs(5)))
    });
    for (text, task) in texts.iter().zip(tasks) {
        match task.await? {
            Ok(word) => println!("{text:?}: {word}"),
            Err(Failure::Method(code)) => println!("{text:?}: error {code}"),
            Err(other) => return Err(other.into()),
        }
    }
    Ok(())
}
