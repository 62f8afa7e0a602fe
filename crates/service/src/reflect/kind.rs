//! The types of messages, as JSON and people know them: words such as `u64`, lists, and named types
//! with fields or variants, which [`Types`] defines.

use std::fmt;

/// A type.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A type without parts: `u8` to `u128`, `i8` to `i128`, `f32`, `f64`, `bool`, `char`,
    /// `string`, `bytes`, `()`; or `any`, if the parts are unknown.
    Word(&'static str),
    /// The value, or `null`.
    Option(Box<Self>),
    /// Any number of values of one type.
    List(Box<Self>),
    /// This number of values of one type.
    Array(Box<Self>, usize),
    /// One value of each type.
    Tuple(Vec<Self>),
    /// Values with keys.
    Map(Box<Self>, Box<Self>),
    /// A type that [`Types`] defines.
    Named(String),
}

/// The parts of a named type.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Content {
    /// A structure.
    Fields(Vec<Field>),
    /// An enumeration: a value has one of these forms. The name of a variant without parts is a
    /// string in JSON, other variants are an object with the name as its only key.
    Variants(Vec<Variant>),
}

/// A field of a structure or a variant.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Field {
    /// Its name.
    pub name: &'static str,
    /// Its type.
    pub kind: Kind,
}

/// A variant of an enumeration.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Variant {
    /// Its name.
    pub name: &'static str,
    /// Its parts.
    pub parts: Parts,
}

/// The parts of a variant.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Parts {
    /// None.
    Unit,
    /// A value, or a tuple of several.
    Value(Kind),
    /// Fields.
    Fields(Vec<Field>),
}

/// The definitions of named types.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Types(Vec<(String, Content)>);

impl Field {
    /// A field.
    pub const fn new(name: &'static str, kind: Kind) -> Self {
        Self { name, kind }
    }
}

impl Kind {
    /// A type whose parts are unknown.
    pub(crate) const ANY: Self = Self::Word("any");
}

impl Types {
    /// Defines a structure with these fields.
    pub fn structure(&mut self, name: &str, fields: Vec<Field>) -> Kind {
        self.define(name, Content::Fields(fields))
    }

    /// The parts of a type.
    pub fn get(&self, name: &str) -> Option<&Content> {
        let found = self.0.iter().find(|(known, _)| known == name);
        found.map(|(_, content)| content)
    }

    /// All definitions, each after those that it was found to need.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Content)> {
        self.0.iter().map(|(name, content)| (&**name, content))
    }

    /// Defines a type. If a different one has this name, the new one gets a number too.
    pub(crate) fn define(&mut self, name: &str, content: Content) -> Kind {
        let numbered = (2..).map(|number: u32| format!("{name}#{number}"));
        let names = std::iter::once(name.to_owned()).chain(numbered);
        for name in names {
            match self.get(&name) {
                Some(known) if *known != content => {}
                Some(_) => return Kind::Named(name),
                None => {
                    self.0.push((name.clone(), content));
                    return Kind::Named(name);
                }
            }
        }
        Kind::ANY
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Word(word) => f.write_str(word),
            Self::Option(kind) => write!(f, "Option<{kind}>"),
            Self::List(kind) => write!(f, "[{kind}]"),
            Self::Array(kind, len) => write!(f, "[{kind}; {len}]"),
            Self::Tuple(kinds) => {
                f.write_str("(")?;
                for (place, kind) in kinds.iter().enumerate() {
                    let comma = if place == 0 { "" } else { ", " };
                    write!(f, "{comma}{kind}")?;
                }
                f.write_str(")")
            }
            Self::Map(key, value) => write!(f, "{{{key}: {value}}}"),
            Self::Named(name) => f.write_str(name),
        }
    }
}
