//! A client that survives a restart of its server: tasks of two threads call over one channel, with
//! an executor of ten lines. Any other executor works too.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake};
use std::thread::{Thread, park};

use dunlin::{Auto, Channel, ChannelError, Nexus, ReqType, Rpc};

const DOUBLE: ReqType = ReqType(1);

fn main() -> anyhow::Result<()> {
    let nexus = Nexus::bind("127.0.0.1:0")?;
    let address = nexus.address();
    let channel = Channel::builder().address(address.to_string()).open()?;
    serve_while(nexus, || {
        std::thread::scope(|scope| {
            let doubled = [20, 21].map(|number| {
                let channel = channel.clone();
                scope.spawn(move || block_on(double(&channel, number)))
            });
            for result in doubled.map(|task| task.join().expect("a task does not panic")) {
                println!("{}", result?);
            }
            anyhow::Ok(())
        })
    })?;
    println!("the server has ended");
    let waits = std::thread::spawn(move || block_on(double(&channel, 50)));
    let nexus = Nexus::builder().bind(address)?;
    serve_while(nexus, || {
        let result = waits.join().expect("a task does not panic")?;
        println!("after its restart: {result}");
        Ok(())
    })
}

async fn double(channel: &Channel, number: u8) -> Result<u8, ChannelError> {
    let answer = channel.call(DOUBLE, &[number]).idempotent(true).await?;
    Ok(answer[0])
}

/// Serves in a thread until `work` has ended.
fn serve_while(nexus: Nexus, work: impl FnOnce() -> anyhow::Result<()>) -> anyhow::Result<()> {
    let stopped = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut rpc: Rpc<Auto, ()> = nexus.endpoint(()).expect("the system has descriptors");
            rpc.on(DOUBLE, |(), request, cx| {
                let doubled = request.data().first().map_or(0, |number| number * 2);
                request.reply_bytes(cx, &[doubled]);
            });
            rpc.run_until(|_| stopped.load(Ordering::Relaxed));
        });
        let result = work();
        stopped.store(true, Ordering::Relaxed);
        result
    })
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn block_on<F: Future>(future: F) -> F::Output {
    let waker = Arc::new(Unpark(std::thread::current())).into();
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        park();
    }
}
