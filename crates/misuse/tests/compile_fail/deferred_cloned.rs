//! A deferred request cannot be cloned to be answered twice.

use dunlin::{Cx, DeferredRequest};

fn answer(deferred: DeferredRequest, cx: &mut Cx<'_>) {
    deferred.clone().reply_bytes(cx, b"once");
    deferred.reply_bytes(cx, b"twice");
}

fn main() {
    let _ = answer;
}
