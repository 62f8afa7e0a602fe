//! An asynchronous handler answers once.

use dunlin::{AsyncError, OwnedRequest};

async fn handle(request: OwnedRequest) -> Result<(), AsyncError> {
    request.reply(b"once")?;
    request.reply(b"twice")
}

fn main() {
    let _ = handle;
}
