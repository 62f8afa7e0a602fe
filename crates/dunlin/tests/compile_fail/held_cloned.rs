//! Nor can it be doubled first.

use dunlin::{Cx, Held};

fn answer(held: Held, cx: &mut Cx<'_>) {
    held.clone().reply_bytes(cx, b"once");
    held.reply_bytes(cx, b"twice");
}

fn main() {
    let _ = answer;
}
