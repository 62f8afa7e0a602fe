//! A request has one answer.

use dunlin::{Cx, Request};

fn answer(_: &mut (), request: Request<'_>, cx: &mut Cx<'_>) {
    request.reply_bytes(cx, b"once");
    request.reply_bytes(cx, b"twice");
}

fn main() {
    let _ = answer;
}
