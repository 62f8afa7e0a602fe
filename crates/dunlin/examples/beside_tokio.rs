//! An endpoint in a tokio program: one task drives it, and waits for its descriptor while nothing
//! happens; other tasks of the thread call and await as they like.

use std::os::fd::OwnedFd;
use std::time::Duration;

use dunlin::{Auto, Caller, Local, Nexus, ReqType, Session, Tasks};
use tokio::io::unix::AsyncFd;
use tokio::task::LocalSet;

const DOUBLE: ReqType = ReqType(1);

/// Turns without work before the driver waits for the descriptor.
const SPIN: u32 = 100;

fn main() -> anyhow::Result<()> {
    let nexus = Nexus::bind("127.0.0.1:0")?;
    let mut local: Local<Auto> = Local::new(nexus.endpoint(Tasks::default())?);
    local.serve(DOUBLE, |request, _| async move {
        let doubled: Vec<u8> = request.data().iter().map(|byte| 2 * byte).collect();
        request.reply(doubled)
    });
    // An endpoint may call itself.
    let session = local.connect(nexus.address())?;
    let cx = local.caller();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    LocalSet::new().block_on(&runtime, async move {
        let driver = tokio::task::spawn_local(drive(local));
        let tasks = (0..4).map(|number| tokio::task::spawn_local(ask(cx.clone(), session, number)));
        for task in tasks.collect::<Vec<_>>() {
            task.await??;
        }
        driver.abort();
        Ok(())
    })
}

/// Runs the endpoint for ever, between tokio's other tasks.
async fn drive(mut local: Local<Auto>) -> anyhow::Result<()> {
    // SAFETY: `AsyncFd` owns the descriptor, which stays open and unchanged until the `AsyncFd` is
    // dropped.
    let descriptor = unsafe { AsyncFd::register(local.descriptor()?)? };
    let mut idle = 0;
    loop {
        idle = if local.turn() { 0 } else { idle + 1 };
        if idle < SPIN {
            tokio::task::yield_now().await;
            continue;
        }
        wait(&mut local, &descriptor).await?;
        idle = 0;
    }
}

/// Waits until the descriptor is readable, another task uses the endpoint, or a timer is due.
async fn wait(local: &mut Local<Auto>, descriptor: &AsyncFd<OwnedFd>) -> anyhow::Result<()> {
    let mut parked = None;
    let mut readable = std::pin::pin!(descriptor.readable());
    let mut timer = std::pin::pin!(tokio::time::sleep(Duration::ZERO));
    std::future::poll_fn(|context| {
        use std::task::Poll;
        if parked.is_some() {
            // Something woke this task, so the driver runs the endpoint again.
            return Poll::Ready(());
        }
        parked = local.park(context.waker());
        let Some(span) = parked else {
            return Poll::Ready(());
        };
        timer.as_mut().reset(tokio::time::Instant::now() + span);
        let ready = timer.as_mut().poll(context).is_ready();
        match readable.as_mut().poll(context) {
            Poll::Ready(Ok(mut guard)) => {
                // The descriptor is level-triggered, so tokio must check it again the next time.
                guard.clear_ready();
                Poll::Ready(())
            }
            Poll::Ready(Err(_)) => Poll::Ready(()),
            Poll::Pending if ready => Poll::Ready(()),
            Poll::Pending => Poll::Pending,
        }
    })
    .await;
    if parked.is_some() {
        local.unpark();
    }
    Ok(())
}

async fn ask(cx: Caller, session: Session, number: u8) -> anyhow::Result<()> {
    for round in 0..3 {
        let reply = cx.call(session, DOUBLE, cx.copy(&[number, round])?).await?;
        anyhow::ensure!(
            reply.data() == [2 * number, 2 * round],
            "{:?}",
            reply.data()
        );
        println!("task {number}, round {round}: {:?}", reply.data());
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    Ok(())
}
