//! The threads of a runtime share the state of a service with `send`, so it must be `Sync`.

use std::cell::Cell;

use dunlin::service;
use dunlin::service::{Context, Fixed};

#[service(codec = Fixed, send)]
trait Kv {
    #[method(1)]
    fn get(key: u8) -> u8;
}

struct Server(Cell<u8>);

impl KvSend for Server {
    async fn get(&self, key: u8, _: Context<'_>) -> u8 {
        self.0.replace(key)
    }
}

fn main() {}
