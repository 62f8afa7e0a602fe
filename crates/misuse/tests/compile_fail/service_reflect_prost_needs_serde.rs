//! A server can turn messages of Prost into JSON only if they also have serde's traits.

use dunlin::service;
use dunlin::service::Prost;

#[derive(Clone, PartialEq, prost::Message)]
struct Item {
    #[prost(uint32, tag = "1")]
    number: u32,
}

#[service(codec = Prost, reflect)]
trait Items {
    #[method(1)]
    fn twice(item: Item) -> Item;
}

fn main() {}
