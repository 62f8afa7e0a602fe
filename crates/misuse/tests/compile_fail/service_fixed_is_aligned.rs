//! Messages lie at any address: a type of a fixed layout must not need an alignment.

use dunlin::service;
use dunlin::service::Fixed;

#[service(codec = Fixed)]
trait Names {
    #[method(1)]
    fn find(name: u32) -> u8;
}

fn main() {}
