//! Why JSON is not a value of a type: the place in the JSON, the type expected there, and the value
//! that was found.

use std::fmt;

use serde_json::Value;

use super::kind::{Content, Field, Kind, Parts, Types, Variant};
use crate::bounded::{fits_f32, not_finite};

/// Why JSON is not a value of a type, for people.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Misfit(String);

/// The differences to look for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Look<'a> {
    /// Fields that their type does not have, which serde ignores: usually, they are misspelled.
    Unknown,
    /// Also values of another type, and of the missing fields only the one that this error of serde
    /// names: a type does not show which fields are optional.
    Serde(&'a str),
    /// Also values of another type, and all missing fields.
    #[cfg(feature = "fixed")]
    All,
}

impl Look<'_> {
    /// Whether the lack of a field is a difference.
    fn needs(self, field: &str) -> bool {
        match self {
            Self::Unknown => false,
            Self::Serde(error) => error.starts_with(&format!("missing field `{field}`")),
            #[cfg(feature = "fixed")]
            Self::All => true,
        }
    }
}

impl Misfit {
    /// A reason.
    pub fn new(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }
}

/// Looks for a difference between a value and its type.
pub(super) fn compare(
    types: &Types,
    kind: &Kind,
    value: &Value,
    look: Look<'_>,
) -> Result<(), Misfit> {
    let path = String::new();
    Walk { types, path, look }.value(kind, value)
}

struct Walk<'a> {
    types: &'a Types,
    /// The place in the value: `pair.keys[2]`.
    path: String,
    look: Look<'a>,
}

impl Walk<'_> {
    fn value(&mut self, kind: &Kind, value: &Value) -> Result<(), Misfit> {
        match (kind, value) {
            (Kind::Word(word), value) if is_word(word, value) => Ok(()),
            (Kind::Option(_), Value::Null) => Ok(()),
            (Kind::Option(kind), value) => self.value(kind, value),
            (Kind::List(kind), Value::Array(items)) => {
                self.items(items.iter().map(|it| (&**kind, it)))
            }
            (Kind::Array(kind, len), Value::Array(items)) if items.len() == *len => {
                self.items(items.iter().map(|it| (&**kind, it)))
            }
            (Kind::Tuple(kinds), Value::Array(items)) if items.len() == kinds.len() => {
                self.items(kinds.iter().zip(items))
            }
            (Kind::Map(_, kind), Value::Object(entries)) => {
                let mut entries = entries.iter();
                entries.try_for_each(|(key, value)| self.field(key, kind, value))
            }
            (Kind::Named(name), value) => self.named(name, value),
            (kind, value) => self.expected(&kind.to_string(), value),
        }
    }

    fn items<'a>(
        &mut self,
        items: impl Iterator<Item = (&'a Kind, &'a Value)>,
    ) -> Result<(), Misfit> {
        for (place, (kind, value)) in items.enumerate() {
            self.within(&format!("[{place}]"), |walk| walk.value(kind, value))?;
        }
        Ok(())
    }

    fn named(&mut self, name: &str, value: &Value) -> Result<(), Misfit> {
        match (self.types.get(name), value) {
            (None, _) => Ok(()),
            (Some(Content::Fields(fields)), value) => self.fields(name, fields, value),
            (Some(Content::Variants(variants)), value) => self.variants(name, variants, value),
        }
    }

    fn fields(&mut self, name: &str, fields: &[Field], value: &Value) -> Result<(), Misfit> {
        let Value::Object(entries) = value else {
            let names: Vec<_> = fields.iter().map(|field| field.name).collect();
            let what = format!("{name}, an object with the fields {}", names.join(", "));
            return self.expected(&what, value);
        };
        for (key, value) in entries {
            match fields.iter().find(|field| field.name == key) {
                Some(field) => self.field(key, &field.kind, value)?,
                None => return Err(self.unknown(name, key, fields)),
            }
        }
        let missing = |it: &&Field| !entries.contains_key(it.name) && self.look.needs(it.name);
        match fields.iter().find(missing) {
            Some(Field { name, kind }) => {
                let place = self.at(name);
                Err(Misfit(format!("{place} is missing; expected {kind}")))
            }
            None => Ok(()),
        }
    }

    fn variants(&mut self, name: &str, all: &[Variant], value: &Value) -> Result<(), Misfit> {
        let chosen = match value {
            Value::String(variant) => Some((variant, &Value::Null)),
            Value::Object(entries) if entries.len() == 1 => entries.iter().next(),
            _ => None,
        };
        let found = chosen.and_then(|(key, value)| {
            let variant = all.iter().find(|variant| variant.name == key);
            variant.map(|variant| (variant, value))
        });
        match found {
            Some((Variant { name, parts }, value)) => {
                self.within(&format!(".{name}"), |walk| match parts {
                    Parts::Unit => walk.value(&Kind::Word("()"), value),
                    Parts::Value(kind) => walk.value(kind, value),
                    Parts::Fields(fields) => walk.fields(name, fields, value),
                })
            }
            None => {
                let names: Vec<_> = all.iter().map(|variant| variant.name).collect();
                self.expected(&format!("{name}, one of {}", names.join(", ")), value)
            }
        }
    }

    fn field(&mut self, name: &str, kind: &Kind, value: &Value) -> Result<(), Misfit> {
        self.within(&format!(".{name}"), |walk| walk.value(kind, value))
    }

    fn within(
        &mut self,
        part: &str,
        look: impl FnOnce(&mut Self) -> Result<(), Misfit>,
    ) -> Result<(), Misfit> {
        let outer = self.path.len();
        self.path.push_str(part);
        let looked = look(self);
        self.path.truncate(outer);
        looked
    }

    fn expected(&self, what: &str, value: &Value) -> Result<(), Misfit> {
        if self.look == Look::Unknown {
            return Ok(());
        }
        let found = found(value);
        Err(Misfit(match self.path.trim_start_matches('.') {
            "" => format!("expected {what}, found {found}"),
            path => format!("field `{path}`: expected {what}, found {found}"),
        }))
    }

    fn unknown(&self, name: &str, key: &str, fields: &[Field]) -> Misfit {
        let fields: Vec<_> = fields
            .iter()
            .map(|it| format!("{}: {}", it.name, it.kind))
            .collect();
        let fields = match &fields[..] {
            [] => "no fields".to_owned(),
            fields => format!("the fields {}", fields.join(", ")),
        };
        Misfit(format!("{} is unknown; {name} has {fields}", self.at(key)))
    }

    fn at(&self, field: &str) -> String {
        let path = format!("{}.{field}", self.path);
        format!("field `{}`", path.trim_start_matches('.'))
    }
}

/// Whether a value may be of this type. If in doubt, true: serde decides.
fn is_word(word: &str, value: &Value) -> bool {
    let within = |bits: u32| value.as_u64().is_some_and(|it| it >> (bits - 1) >> 1 == 0);
    let signed = |bits: u32| {
        let limit = i64::MAX >> (64 - bits);
        value
            .as_i64()
            .is_some_and(|it| (!limit..=limit).contains(&it))
    };
    match word {
        "u8" => within(8),
        "u16" => within(16),
        "u32" => within(32),
        "u64" => within(64),
        "i8" => signed(8),
        "i16" => signed(16),
        "i32" => signed(32),
        "i64" => signed(64),
        "u128" | "i128" => value.is_number() || value.is_string(),
        "f32" => is_finite(value) || is_not_finite(value),
        "f64" => value.is_number() || is_not_finite(value),
        "bool" => value.is_boolean(),
        "string" => value.is_string(),
        "char" => value.as_str().is_some_and(|it| it.chars().count() == 1),
        "bytes" => value.is_string() || value.is_array(),
        "()" => value.is_null(),
        _ => true,
    }
}

fn is_finite(value: &Value) -> bool {
    value.as_f64().is_some_and(fits_f32)
}

/// Whether this is a string for a number that JSON does not have.
fn is_not_finite(value: &Value) -> bool {
    value
        .as_str()
        .is_some_and(|word| not_finite(word).is_some())
}

fn found(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::String(_) => "a string".to_owned(),
        Value::Array(items) => format!("an array of {}", items.len()),
        Value::Object(_) => "an object".to_owned(),
    }
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Misfit {}
