//! The data that a handler sees lies in the receive frame and is gone when it returns.

use dunlin::service::{Context, Fixed};
use dunlin::{Cx, service};

#[service(codec = Fixed)]
trait Bytes {
    #[method(1)]
    fn keep(bytes: [u8; 32]);
}

struct App {
    kept: Option<&'static [u8; 32]>,
}

impl BytesPoll for App {
    fn keep(&mut self, bytes: &[u8; 32], _: &mut Cx<'_>, _: Context<'_>) {
        self.kept = Some(bytes);
    }
}

fn main() {}
