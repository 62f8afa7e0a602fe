//! An endpoint in a tokio program: one task drives it, and waits for its descriptor while nothing
//! happens; other tasks of the thread call and await as they like.

use std::time::Duration;

use dunlin::{Auto, Caller, Local, Nexus, ReqType, Session, Tasks};
use tokio::task::LocalSet;

const DOUBLE: ReqType = ReqType(1);

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
        let driver = tokio::task::spawn_local(dunlin_tokio::drive(local));
        let tasks = (0..4).map(|number| tokio::task::spawn_local(ask(cx.clone(), session, number)));
        for task in tasks.collect::<Vec<_>>() {
            task.await??;
        }
        driver.abort();
        Ok(())
    })
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
