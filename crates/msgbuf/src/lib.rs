//! placeholder
/// placeholder
#[derive(Clone, Copy, Debug)]
pub struct BufRef;
