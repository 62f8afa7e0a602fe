//! A handler cannot keep the bytes of its request.

use dunlin::{Cx, Request};

fn keep(kept: &mut Vec<&'static [u8]>, request: Request<'_>, cx: &mut Cx<'_>) {
    kept.push(request.data());
    request.reply_bytes(cx, b"");
}

fn main() {
    let _ = keep;
}
