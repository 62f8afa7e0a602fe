//! The futures of a service with `send` move between threads, so a handler must not keep a value
//! that is not `Send` while it waits.

use std::rc::Rc;

use dunlin::service;
use dunlin::service::{Context, Fixed};

#[service(codec = Fixed, send)]
trait Kv {
    #[method(1)]
    fn get(key: u8) -> u8;
}

struct Server;

impl KvSend for Server {
    async fn get(&self, key: u8, _: Context<'_>) -> u8 {
        let kept = Rc::new(key);
        std::future::ready(()).await;
        *kept
    }
}

fn main() {}
