//! A deferred request, too, has one answer.

use dunlin::{Cx, DeferredRequest, ErrorCode};

fn answer(deferred: DeferredRequest, cx: &mut Cx<'_>) {
    deferred.reply_bytes(cx, b"once");
    deferred.reject(cx, ErrorCode::OVERLOADED);
}

fn main() {
    let _ = answer;
}
