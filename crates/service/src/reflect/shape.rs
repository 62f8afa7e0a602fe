//! [`Shape`]: messages of a fixed layout, as JSON.

use serde::Deserialize;
use serde_json::Value;
use zerocopy::byteorder::{ByteOrder, F32, F64, I16, I32, I64, I128, U16, U32, U64, U128};

use super::kind::{Kind, Types};

/// A type of a fixed layout, or a part of one, as JSON. Derive it for messages: their fields are
/// integers and floating-point numbers (also zerocopy's), arrays, `()`, and types that
/// have a `Shape` themselves.
///
/// ```
/// use dunlin_service::reflect::Shape;
/// use zerocopy::little_endian::U64;
///
/// #[derive(Shape)]
/// #[shape(crate = dunlin_service)]
/// struct Value {
///     version: U64,
///     bytes: [u8; 2],
/// }
///
/// let mut json = String::new();
/// Value { version: U64::new(7), bytes: [1, 2] }.write(&mut json);
/// assert_eq!(json, r#"{"version":7,"bytes":[1,2]}"#);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no `Shape`, so a server cannot turn it into JSON and back",
    label = "a method of a service with `reflect` has this message, or a part of one",
    note = "derive `Shape` for `{Self}`: `#[derive(Shape)]`"
)]
pub trait Shape: Sized {
    /// Describes the type for people. Adds the definitions of named types.
    fn kind(types: &mut Types) -> Kind;

    /// Reads a value. `None`: the JSON is not a value of this type.
    fn read(json: &Value) -> Option<Self>;

    /// Appends the value.
    fn write(&self, json: &mut String);
}

macro_rules! numbers {
    ($($number:ident)*) => {$(
        impl Shape for $number {
            fn kind(_: &mut Types) -> Kind {
                Kind::Word(stringify!($number))
            }

            fn read(json: &Value) -> Option<Self> {
                Self::deserialize(json).ok()
            }

            fn write(&self, json: &mut String) {
                put(json, self);
            }
        }
    )*};
}

macro_rules! of_zerocopy {
    ($($number:ident is $native:ident)*) => {$(
        impl<O: ByteOrder> Shape for $number<O> {
            fn kind(types: &mut Types) -> Kind {
                $native::kind(types)
            }

            fn read(json: &Value) -> Option<Self> {
                $native::read(json).map(Self::new)
            }

            fn write(&self, json: &mut String) {
                self.get().write(json);
            }
        }
    )*};
}

/// Integers that need more than 64 bits are strings: most readers of JSON keep numbers as doubles,
/// which lose digits.
macro_rules! wide {
    ($($number:ident $narrow:ident)*) => {$(
        impl Shape for $number {
            fn kind(_: &mut Types) -> Kind {
                Kind::Word(stringify!($number))
            }

            fn read(json: &Value) -> Option<Self> {
                match json {
                    Value::String(digits) => digits.parse().ok(),
                    json => $narrow::deserialize(json).ok().map(Self::from),
                }
            }

            fn write(&self, json: &mut String) {
                match $narrow::try_from(*self) {
                    Ok(narrow) => put(json, narrow),
                    Err(_) => put(json, self.to_string()),
                }
            }
        }
    )*};
}

/// JSON has no numbers that are not finite, so those are strings.
macro_rules! floats {
    ($($number:ident)*) => {$(
        impl Shape for $number {
            fn kind(_: &mut Types) -> Kind {
                Kind::Word(stringify!($number))
            }

            fn read(json: &Value) -> Option<Self> {
                match json {
                    Value::String(word) => word.parse().ok().filter(|it: &Self| !it.is_finite()),
                    json => Self::deserialize(json).ok().filter(|it| it.is_finite()),
                }
            }

            fn write(&self, json: &mut String) {
                match self.is_finite() {
                    true => put(json, self),
                    false => put(json, self.to_string()),
                }
            }
        }
    )*};
}

numbers!(u8 u16 u32 u64 i8 i16 i32 i64 bool);
floats!(f32 f64);
wide!(u128 u64 i128 i64);
of_zerocopy!(U16 is u16 U32 is u32 U64 is u64 U128 is u128);
of_zerocopy!(I16 is i16 I32 is i32 I64 is i64 I128 is i128);
of_zerocopy!(F32 is f32 F64 is f64);

impl Shape for () {
    fn kind(_: &mut Types) -> Kind {
        Kind::Word("()")
    }

    fn read(json: &Value) -> Option<Self> {
        json.as_null()
    }

    fn write(&self, json: &mut String) {
        json.push_str("null");
    }
}

impl<T: Shape, const N: usize> Shape for [T; N] {
    fn kind(types: &mut Types) -> Kind {
        Kind::Array(Box::new(T::kind(types)), N)
    }

    fn read(json: &Value) -> Option<Self> {
        let items = json.as_array()?.iter().map(T::read);
        items.collect::<Option<Vec<T>>>()?.try_into().ok()
    }

    fn write(&self, json: &mut String) {
        let mut mark = '[';
        for item in self {
            json.push(std::mem::replace(&mut mark, ','));
            item.write(json);
        }
        json.push_str(if N == 0 { "[]" } else { "]" });
    }
}

/// Appends a number or a string.
fn put(json: &mut String, value: impl serde::Serialize) {
    // This cannot fail: numbers and strings have a form in JSON.
    let text = serde_json::to_string(&value).unwrap_or_default();
    json.push_str(&text);
}
