//! Reads text as a `Value` of JSON, and refuses an object that has a key twice, where serde_json
//! would keep the last value. A `Value` takes up to 80 times the memory of its text, so callers
//! limit the text.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::misfit::Misfit;

/// Reads text as JSON.
pub(super) fn parse(json: &str) -> Result<Value, Misfit> {
    refuse_empty(json)?;
    let strict: Result<Strict, _> = serde_json::from_str(json);
    match strict {
        Ok(Strict(value)) => Ok(value),
        Err(error) if error.is_data() => Err(Misfit::new(error.to_string())),
        Err(error) => Err(no_json(&error)),
    }
}

/// Refuses text without JSON, which is often meant as `null`.
pub(super) fn refuse_empty(json: &str) -> Result<(), Misfit> {
    match json.trim().is_empty() {
        true => Err(Misfit::new("the argument is empty; write `null` for ()")),
        false => Ok(()),
    }
}

/// The error of text that is not JSON.
pub(super) fn no_json(error: &serde_json::Error) -> Misfit {
    Misfit::new(format!("no JSON: {error}"))
}

struct Strict(Value);

struct StrictVisitor;

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(StrictVisitor).map(Self)
    }
}

/// Functions for values without parts.
macro_rules! words {
    ($($function:ident $word:ty;)*) => {$(
        fn $function<E: Error>(self, value: $word) -> Result<Value, E> {
            Ok(value.into())
        }
    )*};
}

impl<'de> Visitor<'de> for StrictVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    words! {
        visit_bool bool;
        visit_u64 u64;
        visit_i64 i64;
        visit_f64 f64;
        visit_str &str;
        visit_string String;
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut array = Vec::new();
        while let Some(Strict(item)) = items.next_element()? {
            array.push(item);
        }
        Ok(Value::Array(array))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some((key, Strict(value))) = entries.next_entry::<String, _>()? {
            if object.contains_key(&key) {
                return Err(A::Error::custom(format!("the key `{key}` occurs twice")));
            }
            object.insert(key, value);
        }
        Ok(Value::Object(object))
    }
}
