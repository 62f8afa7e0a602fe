//! A handler that has run cannot answer as if it had not: a channel would repeat the call.

use dunlin::service::{IncomingRequest, Refusal};
use dunlin::{AsyncError, OwnedRequest};

async fn handle(request: OwnedRequest) -> Result<(), AsyncError> {
    IncomingRequest::refuse(request, Refusal::Overloaded)
}

fn main() {
    let _ = handle;
}
