//! A program that keeps the rules, with the libraries and features of the programs that do not.

use dunlin::service::{Context, Fixed, Prost};
use dunlin::{Offload, Spawn, service};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

#[derive(Clone, PartialEq, prost::Message)]
struct Item {
    #[prost(uint32, tag = "1")]
    number: u32,
}

#[service(codec = Prost)]
trait Items {
    #[method(1)]
    fn twice(item: Item) -> Item;
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, Clone, Copy)]
#[repr(C)]
struct Bare {
    key: u8,
}

#[service(codec = Fixed, reflect, send)]
trait Kv {
    #[method(1)]
    fn get(key: u8) -> u8;
}

#[service(codec = Fixed)]
trait Plain {
    #[method(1)]
    fn get(key: Bare) -> Bare;
}

struct Server;

impl KvSend for Server {
    async fn get(&self, key: u8, _: Context<'_>) -> u8 {
        key
    }
}

fn serve(spawn: impl Spawn) {
    Offload::new(KvSendServer(Server), spawn);
}

fn main() {}
