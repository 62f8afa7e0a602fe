//! A request that was kept has one answer, too.

use dunlin::{Cx, ErrorCode, Held};

fn answer(held: Held, cx: &mut Cx<'_>) {
    held.reply_bytes(cx, b"once");
    held.reject(cx, ErrorCode::OVERLOADED);
}

fn main() {
    let _ = answer;
}
