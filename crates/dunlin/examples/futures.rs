//! Client and server as futures, without a runtime: each thread has a `Local`, which drives its
//! endpoint and its futures. The front asks the storage before it answers.

use std::net::SocketAddr;
use std::time::Duration;

use dunlin::{AsyncError, Auto, Caller, ErrorCode, Local, Nexus, ReqType, RpcError, Tasks};
use futures::channel::oneshot;
use futures::future::{Either, select};

const PUT: ReqType = ReqType(1);
const APPEND: ReqType = ReqType(2);

fn main() -> anyhow::Result<()> {
    let [storage, front, client] = [(); 3].map(|()| Nexus::bind("127.0.0.1:0"));
    let (storage, front, client) = (storage?, front?, client?);
    let (stop_storage, storage_stopped) = oneshot::channel();
    let (stop_front, front_stopped) = oneshot::channel();
    let behind = storage.address();
    std::thread::scope(|scope| {
        let serving = [
            scope.spawn(|| serve_storage(&storage, storage_stopped)),
            scope.spawn(|| serve_front(&front, behind, front_stopped)),
        ];
        let asked = ask(&client, front.address());
        // Dropping the senders ends both server threads.
        drop((stop_front, stop_storage));
        for server in serving {
            server.join().expect("a server does not panic")?;
        }
        asked
    })
}

fn serve_storage(nexus: &Nexus, stopped: oneshot::Receiver<()>) -> anyhow::Result<()> {
    let mut local: Local<Auto> = Local::new(nexus.endpoint(Tasks::default())?);
    let mut log = 0_u64;
    local.serve(APPEND, move |request, cx| {
        log += 1;
        let position = log;
        async move {
            // Stands for a write to a disk. Meanwhile the endpoint serves other requests.
            cx.sleep(Duration::from_micros(100)).await;
            request.reply(position.to_le_bytes())
        }
    });
    let _ = local.block_on(|_| stopped);
    Ok(())
}

fn serve_front(
    nexus: &Nexus,
    storage: SocketAddr,
    stopped: oneshot::Receiver<()>,
) -> anyhow::Result<()> {
    let mut local: Local<Auto> = Local::new(nexus.endpoint(Tasks::default())?);
    let storage = local.connect(storage)?;
    local.serve(PUT, move |mut request, cx: Caller| async move {
        if request.data().is_empty() {
            return request.reject(ErrorCode::application(1));
        }
        // The request's own msgbuf is passed on to the storage. If `?` returns, the client gets an
        // error.
        let body = request.take_buf()?;
        let reply = cx
            .call(storage, APPEND, body)
            .deadline(Duration::from_secs(5))
            .await?;
        request.reply(&reply)
    });
    let _ = local.block_on(|_| stopped);
    Ok(())
}

fn ask(nexus: &Nexus, front: SocketAddr) -> anyhow::Result<()> {
    let mut local: Local<Auto> = Local::new(nexus.endpoint(Tasks::default())?);
    let session = local.connect(front)?;
    local.block_on(|cx| async move {
        // Two calls are in flight at the same time.
        let one = cx.call(session, PUT, cx.copy(b"one")?);
        let two = cx.call(session, PUT, cx.copy(b"two")?);
        let (one, two) = futures::join!(one, two);
        for reply in [one?, two?] {
            let position = u64::from_le_bytes(reply.data().try_into()?);
            println!("number {position} in the log");
        }
        // Here the error is the code that the server returned; the msgbuf comes back with it.
        let refused = cx.call(session, PUT, cx.buf(0)?).await;
        let failed = refused.err().map(|failed| failed.error);
        let expected = AsyncError::Rpc(RpcError::rejected(ErrorCode::application(1), true));
        anyhow::ensure!(failed == Some(expected), "{failed:?}");
        // Dropping the future that loses the race cancels its call.
        let patience = cx.sleep(Duration::from_secs(5));
        match select(cx.call(session, PUT, cx.copy(b"three")?), patience).await {
            Either::Left((reply, _)) => println!("three: {} bytes", reply?.data().len()),
            Either::Right(_) => println!("three: no answer came"),
        }
        Ok(())
    })
}
