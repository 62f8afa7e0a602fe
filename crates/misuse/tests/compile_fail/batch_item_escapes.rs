//! An item of a batch lies in a receive frame, as a request does.

use dunlin::{Batch, BatchItem, Cx};

fn keep(kept: &mut Option<BatchItem<'static>>, mut batch: Batch<'_>, _: &mut Cx<'_>) {
    *kept = batch.iter_mut().next();
}

fn main() {
    let _ = keep;
}
