//! Questions about the methods of a server, and their answers: the bytes of requests to the
//! endpoint that the process has announced for health, and of the responses (rule C16). The server
//! turns JSON into the bytes of a request and the bytes of a response into JSON, so a client can
//! call a method without knowing its codec.

use crate::ReqType;

#[cfg(test)]
mod tests;

/// Asks for the services and methods of the server. The question has no bytes; the answer is JSON.
pub const DESCRIBE: ReqType = ReqType(32_513);

/// Asks for the bytes of a request ([`MessageQuestion`], [`MessageAnswer`]).
pub const TO_MESSAGE: ReqType = ReqType(32_514);

/// Asks for the JSON of a response ([`JsonQuestion`], [`JsonAnswer`]).
pub const TO_JSON: ReqType = ReqType(32_515);

/// The most bytes of a method's name in a question.
pub const MAX_METHOD_NAME: usize = 255;

/// The flag of a method that has no answer.
const ONE_WAY: u8 = 1;

/// A method and its argument, to be turned into the bytes of a request.
///
/// ```
/// use dunlin_wire::MessageQuestion;
///
/// let question = MessageQuestion { method: "Kv.get", json: "7" };
/// let mut out = vec![0; question.size()];
/// question.encode(&mut out);
/// assert_eq!(out, b"\x06Kv.get7");
/// assert_eq!(MessageQuestion::decode(&out), Some(question));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MessageQuestion<'a> {
    /// The method's name, with its service: `Kv.get`. Encoding keeps at most its first 255 bytes.
    pub method: &'a str,
    /// The argument.
    pub json: &'a str,
}

/// The answer to a [`MessageQuestion`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MessageAnswer<'a> {
    /// The bytes of the request, without the front that a caller adds.
    Message {
        /// The number of the method.
        number: u16,
        /// Whether the method has no answer.
        one_way: bool,
        /// The bytes.
        bytes: &'a [u8],
    },
    /// The server has no such method, or cannot turn its argument into bytes. Holds the reason, for
    /// people.
    NoSuchMethod(&'a str),
    /// The JSON is not an argument of this method. Holds the reason, for people.
    Misfit(&'a str),
}

/// The bytes of a response, to be turned into JSON.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct JsonQuestion<'a> {
    /// The number of the method.
    pub number: u16,
    /// The bytes.
    pub response: &'a [u8],
}

/// The answer to a [`JsonQuestion`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum JsonAnswer<'a> {
    /// The value that the method returned.
    Value(&'a str),
    /// The method's own error.
    Error(&'a str),
    /// The server has no method of this number.
    NoSuchMethod(&'a str),
    /// The bytes are not a response of the method, or have no form in JSON. Holds the reason, for
    /// people.
    BadResponse(&'a str),
}

impl<'a> MessageQuestion<'a> {
    /// The length of the encoded question.
    pub fn size(&self) -> usize {
        1 + self.name().len() + self.json.len()
    }

    /// Writes the question.
    ///
    /// # Panics
    /// If `out` does not have [`Self::size`] bytes.
    pub fn encode(&self, out: &mut [u8]) {
        let name = self.name();
        out[0] = u8::try_from(name.len()).expect("the name is cut to 255 bytes");
        let (method, json) = out[1..].split_at_mut(name.len());
        method.copy_from_slice(name.as_bytes());
        json.copy_from_slice(self.json.as_bytes());
    }

    /// Decodes a question. `None` if the bytes are not one.
    pub fn decode(bytes: &'a [u8]) -> Option<Self> {
        let (len, rest) = bytes.split_first()?;
        let (method, json) = rest.split_at_checked(usize::from(*len))?;
        Some(Self {
            method: text(method)?,
            json: text(json)?,
        })
    }

    fn name(&self) -> &'a str {
        &self.method[..self.method.floor_char_boundary(MAX_METHOD_NAME)]
    }
}

impl<'a> MessageAnswer<'a> {
    /// The length of the encoded answer.
    pub const fn size(&self) -> usize {
        match self {
            Self::Message { bytes, .. } => 4 + bytes.len(),
            Self::NoSuchMethod(reason) | Self::Misfit(reason) => 1 + reason.len(),
        }
    }

    /// Writes the answer.
    ///
    /// # Panics
    /// If `out` does not have [`Self::size`] bytes.
    pub fn encode(&self, out: &mut [u8]) {
        match self {
            Self::Message {
                number,
                one_way,
                bytes,
            } => {
                let [low, high] = number.to_le_bytes();
                out[..4].copy_from_slice(&[0, low, high, u8::from(*one_way) * ONE_WAY]);
                out[4..].copy_from_slice(bytes);
            }
            Self::NoSuchMethod(reason) => tagged(out, 1, reason),
            Self::Misfit(reason) => tagged(out, 2, reason),
        }
    }

    /// Decodes an answer. `None` if the bytes are not one.
    pub fn decode(bytes: &'a [u8]) -> Option<Self> {
        match bytes {
            [0, low, high, flags, bytes @ ..] => Some(Self::Message {
                number: u16::from_le_bytes([*low, *high]),
                one_way: flags & ONE_WAY != 0,
                bytes,
            }),
            [1, reason @ ..] => text(reason).map(Self::NoSuchMethod),
            [2, reason @ ..] => text(reason).map(Self::Misfit),
            _ => None,
        }
    }
}

impl<'a> JsonQuestion<'a> {
    /// The length of the encoded question.
    pub const fn size(&self) -> usize {
        2 + self.response.len()
    }

    /// Writes the question.
    ///
    /// # Panics
    /// If `out` does not have [`Self::size`] bytes.
    pub fn encode(&self, out: &mut [u8]) {
        out[..2].copy_from_slice(&self.number.to_le_bytes());
        out[2..].copy_from_slice(self.response);
    }

    /// Decodes a question. `None` if the bytes are not one.
    pub fn decode(bytes: &'a [u8]) -> Option<Self> {
        let (number, response) = bytes.split_first_chunk()?;
        let number = u16::from_le_bytes(*number);
        Some(Self { number, response })
    }
}

impl<'a> JsonAnswer<'a> {
    /// The length of the encoded answer.
    pub const fn size(&self) -> usize {
        1 + self.parts().1.len()
    }

    /// Writes the answer.
    ///
    /// # Panics
    /// If `out` does not have [`Self::size`] bytes.
    pub fn encode(&self, out: &mut [u8]) {
        let (tag, text) = self.parts();
        tagged(out, tag, text);
    }

    /// Decodes an answer. `None` if the bytes are not one.
    pub fn decode(bytes: &'a [u8]) -> Option<Self> {
        let (tag, rest) = bytes.split_first()?;
        let text = text(rest)?;
        match tag {
            0 => Some(Self::Value(text)),
            1 => Some(Self::NoSuchMethod(text)),
            2 => Some(Self::BadResponse(text)),
            3 => Some(Self::Error(text)),
            _ => None,
        }
    }

    const fn parts(&self) -> (u8, &'a str) {
        match self {
            Self::Value(json) => (0, json),
            Self::NoSuchMethod(reason) => (1, reason),
            Self::BadResponse(reason) => (2, reason),
            Self::Error(json) => (3, json),
        }
    }
}

fn tagged(out: &mut [u8], tag: u8, text: &str) {
    out[0] = tag;
    out[1..].copy_from_slice(text.as_bytes());
}

fn text(bytes: &[u8]) -> Option<&str> {
    core::str::from_utf8(bytes).ok()
}
