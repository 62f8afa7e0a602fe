//! Both sides know a method by its number, so two methods cannot have the same.

use dunlin::service;
use dunlin::service::Fixed;

#[service(codec = Fixed)]
trait Twice {
    #[method(7)]
    fn first(value: u8) -> u8;

    #[method(7)]
    fn second(value: u8) -> u8;
}

fn main() {}
