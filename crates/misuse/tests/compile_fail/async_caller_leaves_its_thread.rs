//! An endpoint and its futures belong to one thread.

use dunlin::Caller;

fn move_away(cx: Caller) {
    std::thread::spawn(move || cx.now());
}

fn main() {
    let _ = move_away;
}
