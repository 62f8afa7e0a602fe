//! While a call is under way, its msgbufs belong to the endpoint: the transport may read them at
//! any moment.

use dunlin::{Cx, MsgBuf, ReqType, Session, Tag};

fn ask(cx: &mut Cx<'_>, session: Session, mut request: MsgBuf, response: MsgBuf) {
    let _ = cx.call(session, ReqType(1), request, response, Tag(0));
    request.data_mut().fill(0);
}

fn main() {
    let _ = ask;
}
