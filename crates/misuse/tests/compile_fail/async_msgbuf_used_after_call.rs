//! A msgbuf belongs to its call until the call ends, even if calls are futures.

use dunlin::{Caller, MsgBuf, ReqType, Session};

async fn ask(cx: Caller, session: Session, mut request: MsgBuf) {
    let call = cx.call(session, ReqType(1), request);
    request.data_mut().fill(0);
    let _ = call.await;
}

fn main() {
    let _ = ask;
}
