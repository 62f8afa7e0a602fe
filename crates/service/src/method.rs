//! The types of a method. The attribute makes one type for each method; that type has no values.

use dunlin_wire::ReqType;

use crate::codec::Codec;
use crate::frame::META;
use crate::outcome::Outcome;

/// A method of a service.
pub trait Method: Sized + 'static {
    /// Its number, from 1 to 32511: the request type. It never changes, and is never reused. The
    /// attribute has added the base of its service. 32512 to 32767 are Dunlin's own.
    const NUMBER: u16;
    /// Its name, for people to read.
    const NAME: &'static str;
    /// True if its response is empty, and the client does not wait for it.
    const ONE_WAY: bool;
    /// True if it may run twice, and late: a channel repeats such a call after an end that leaves
    /// open if it ran.
    const IDEMPOTENT: bool = false;
    /// Converts its messages to bytes and back.
    type Codec: Codec<Self::Request>;
    /// Its argument.
    type Request;
    /// Its result.
    type Outcome: Outcome<Self::Codec>;

    /// The request types without and with metadata.
    fn types() -> [ReqType; 2] {
        [ReqType(Self::NUMBER), ReqType(Self::NUMBER | META)]
    }
}

/// A request as the server reads it: borrowed, if the codec need not copy.
pub type ViewOf<'a, M> = <<M as Method>::Codec as Codec<<M as Method>::Request>>::View<'a>;
