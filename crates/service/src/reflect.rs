//! Reflection of services: their methods with the types of their messages, and the conversion of
//! these messages to JSON and back. A server answers the questions of rule C16 with it. The
//! attribute generates it for the option `reflect`, as constants, so it costs nothing until a
//! client asks.
//!
//! | file | what it owns |
//! |---|---|
//! | `kind.rs` | the types of messages, as people and JSON know them |
//! | `describe.rs` | services and methods as the JSON that `dunlin list` prints |
//! | `shape.rs` | `Shape`: messages of a fixed layout, as JSON |
//! | `message.rs` | `InJson`: messages of each codec, as JSON |
//! | `probe.rs` | finds the fields of a type that serde knows |
//! | `misfit.rs` | why JSON is not a value of a type |
//! | `value.rs` | text as a `Value`, without a key twice |

mod describe;
mod kind;
mod message;
mod misfit;
mod probe;
#[cfg(feature = "fixed")]
mod shape;
mod value;
mod worded;

use std::fmt;

use crate::codec::{Codec, DecodeError, EncodeError};
use crate::method::Method;
use crate::outcome;

pub use describe::description;
pub use kind::{Content, Field, Kind, Parts, Types, Variant};
pub use message::{InJson, from_json, kind_of, to_json};
pub use misfit::Misfit;
/// Values of JSON, as `Shape` reads them.
pub use serde_json::Value;
#[cfg(feature = "fixed")]
pub use {dunlin_service_macros::Shape, shape::Shape};

/// A service whose methods a server can describe and call by JSON. For a trait `Kv` with
/// `#[service(reflect)]`, that is `KvReflection`.
pub trait Reflected {
    /// The service's name: the name of its trait.
    const NAME: &'static str;
    /// The methods, in the order of the trait.
    const METHODS: &'static [MethodReflection];
    /// The reflection of the service.
    const SERVICE: &'static ServiceReflection = &ServiceReflection::new(Self::NAME, Self::METHODS);
}

/// The name of a service, and its methods.
#[derive(Debug)]
pub struct ServiceReflection {
    name: &'static str,
    methods: &'static [MethodReflection],
}

/// One method: its facts, and the conversions of its messages.
pub struct MethodReflection {
    name: &'static str,
    number: u16,
    one_way: bool,
    idempotent: bool,
    codec: fn() -> &'static str,
    request: Conversion,
    value: Conversion,
    /// `None`: the method cannot fail.
    error: Option<Conversion>,
}

/// Converts the values of one type, in one codec.
#[derive(Clone, Copy)]
pub struct Conversion {
    kind: fn(&mut Types) -> Kind,
    to_bytes: fn(&str) -> Result<Vec<u8>, Misfit>,
    to_json: fn(&[u8]) -> Result<String, BadResponse>,
}

/// The result of a method, as JSON.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Returned {
    /// The value of a method that has not failed.
    Value(String),
    /// The method's own error.
    Error(String),
}

/// Why a response has no JSON.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BadResponse {
    /// The bytes are not a response of the method.
    Undecodable(DecodeError),
    /// The value has no form in JSON: it is a map whose keys are structures, for example.
    NoJson,
}

impl ServiceReflection {
    /// The service with this name: the name of its trait.
    pub const fn new(name: &'static str, methods: &'static [MethodReflection]) -> Self {
        Self { name, methods }
    }

    /// The name of the service.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// The methods, in the order of the trait.
    pub const fn methods(&self) -> &'static [MethodReflection] {
        self.methods
    }
}

impl MethodReflection {
    /// The method `M`, with the conversions of its argument, its value and its own error.
    pub const fn new<M: Method>(
        request: Conversion,
        value: Conversion,
        error: Option<Conversion>,
    ) -> Self {
        Self {
            name: M::NAME,
            number: M::NUMBER,
            one_way: M::ONE_WAY,
            idempotent: M::IDEMPOTENT,
            codec: std::any::type_name::<M::Codec>,
            request,
            value,
            error,
        }
    }

    /// The name, after the name of the service: `Kv.get`.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// The number of the method, which is its request type.
    pub const fn number(&self) -> u16 {
        self.number
    }

    /// Whether the method has no answer.
    pub const fn is_one_way(&self) -> bool {
        self.one_way
    }

    /// Turns an argument into the bytes of a request, without a front.
    ///
    /// # Errors
    /// If the text is not an argument of this method.
    pub fn message(&self, json: &str) -> Result<Vec<u8>, Misfit> {
        (self.request.to_bytes)(json)
    }

    /// Turns the bytes of a response into JSON.
    ///
    /// # Errors
    /// If the bytes are not a response of this method, or the value has no form in JSON.
    pub fn returned(&self, response: &[u8]) -> Result<Returned, BadResponse> {
        let Some(error) = &self.error else {
            return (self.value.to_json)(response).map(Returned::Value);
        };
        match outcome::split(response).map_err(BadResponse::Undecodable)? {
            Ok(body) => (self.value.to_json)(body).map(Returned::Value),
            Err(body) => (error.to_json)(body).map(Returned::Error),
        }
    }

    /// The codec's name, without the path of its module.
    fn codec(&self) -> String {
        let name = (self.codec)();
        let (path, parameters) = name.split_at(name.find('<').unwrap_or(name.len()));
        let last = path.rsplit("::").next().unwrap_or(path);
        format!("{last}{parameters}")
    }
}

impl Conversion {
    /// Converts values of `T` in the codec `C`.
    pub const fn of<C: Codec<T>, T: InJson<C>>() -> Self {
        Self {
            kind: T::kind,
            to_bytes: to_bytes::<C, T>,
            to_json: written::<C, T>,
        }
    }
}

fn to_bytes<C: Codec<T>, T: InJson<C>>(json: &str) -> Result<Vec<u8>, Misfit> {
    let value = T::from_json(json)?;
    let no_bytes = |_: EncodeError| Misfit::new("the method's codec cannot encode this value");
    let mut bytes = vec![0; C::size(&value).map_err(no_bytes)?];
    C::encode(&value, &mut bytes);
    Ok(bytes)
}

fn written<C: Codec<T>, T: InJson<C>>(bytes: &[u8]) -> Result<String, BadResponse> {
    let view = C::decode(bytes).map_err(BadResponse::Undecodable)?;
    C::to_owned(view).to_json().ok_or(BadResponse::NoJson)
}

impl fmt::Debug for MethodReflection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MethodReflection")
            .field("name", &self.name)
            .field("number", &self.number)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Conversion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Conversion").finish_non_exhaustive()
    }
}

impl fmt::Display for BadResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Undecodable(error) => error.fmt(f),
            Self::NoJson => f.write_str("the value has no form in JSON"),
        }
    }
}

impl std::error::Error for BadResponse {}

#[cfg(test)]
mod tests;
