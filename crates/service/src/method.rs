//! The types of a method. The attribute makes one type for each method; that type has no values.

use dunlin_wire::ReqType;

use crate::codec::Codec;
use crate::frame::META;
use crate::outcome::Outcome;

/// A method of a service.
pub trait Method: Sized + 'static {
    /// The method's number, from 1 to 32511: its request type. It never changes, and is never
    /// reused. The attribute has added the base of the service. 32512 to 32767 are reserved for
    /// Dunlin.
    const NUMBER: u16;
    /// The method's name, for people to read.
    const NAME: &'static str;
    /// True if the response is empty, and the client does not wait for it.
    const ONE_WAY: bool;
    /// True if the method may run twice, and late. A channel repeats such a call if it ends without
    /// telling whether the method ran.
    const IDEMPOTENT: bool = false;
    /// Converts the method's messages to bytes and back.
    type Codec: Codec<Self::Request>;
    /// The method's argument.
    type Request;
    /// The method's result.
    type Outcome: Outcome<Self::Codec>;

    /// The method's request types, without and with metadata.
    fn types() -> [ReqType; 2] {
        [ReqType(Self::NUMBER), ReqType(Self::NUMBER | META)]
    }
}

/// A request as the server reads it: borrowed, if the codec need not copy.
pub type ViewOf<'a, M> = <<M as Method>::Codec as Codec<<M as Method>::Request>>::View<'a>;
