//! A request lies in a receive frame that the endpoint reuses when the handler has returned.

use dunlin::{Cx, Request};

fn keep(kept: &mut Vec<Request<'static>>, request: Request<'_>, _: &mut Cx<'_>) {
    kept.push(request);
}

fn main() {
    let _ = keep;
}
