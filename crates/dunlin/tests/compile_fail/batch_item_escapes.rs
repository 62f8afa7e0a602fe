//! An item of a batch lies in a receive frame, as a request does.

use dunlin::{Batch, BatchItem, Cx};

fn keep(kept: &mut Vec<BatchItem<'static>>, mut batch: Batch<'_>, _: &mut Cx<'_>) {
    kept.extend(batch.iter_mut());
}

fn main() {
    let _ = keep;
}
