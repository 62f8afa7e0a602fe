//! Without the option `send`, a service's server cannot run on the threads of a runtime.

use dunlin::service::{Context, Fixed};
use dunlin::{Offload, Spawn, service};

#[service(codec = Fixed)]
trait Kv {
    #[method(1)]
    fn get(key: u8) -> u8;
}

struct Server;

impl Kv for Server {
    async fn get(&self, key: &u8, _: Context<'_>) -> u8 {
        *key
    }
}

fn serve(spawn: impl Spawn) {
    Offload::new(KvServer(Server), spawn);
}

fn main() {}
