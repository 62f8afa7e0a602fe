//! A value of an option, whatever the type of its field. `field.rs` reads it from the field and
//! writes it there; `text.rs` parses and shows it.

use std::net::IpAddr;

/// A value, in the unit of its field.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Value {
    Switch(bool),
    Number(u64),
    /// One of the row's words.
    Word(&'static str),
    Ip(IpAddr),
    Text(String),
    /// The field is `None`; the row's first word stands for that.
    Unset,
}
