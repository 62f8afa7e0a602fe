//! The types of messages, as JSON and people know them: words such as `u64`, lists, and named types
//! with fields or variants, which [`Types`] defines.

use std::fmt;

use super::probe::Form;

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
pub struct Types {
    defined: Vec<(String, Content)>,
    /// The serde types whose exploration has ended, and those whose exploration has begun. A type
    /// that is found again while its exploration has only begun contains itself.
    explored: Vec<(Form, Kind)>,
}

/// The place of a type among those that were explored.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Begun(usize);

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
        let found = self.defined.iter().find(|(known, _)| known == name);
        found.map(|(_, content)| content)
    }

    /// All definitions, each after the definitions that it needs.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Content)> {
        let all = self.defined.iter();
        all.map(|(name, content)| (&**name, content))
    }

    /// The type with this form, if it was found before.
    pub(crate) fn explored(&self, form: Form) -> Option<&Kind> {
        let found = self.explored.iter().find(|(known, _)| *known == form);
        found.map(|(_, kind)| kind)
    }

    /// Begins to explore a type, and reserves its name. If the type contains itself, the inner one
    /// is shown by this name, or as `any` if the type has no name.
    pub(crate) fn begin(&mut self, form: Form, name: Option<&str>) -> Begun {
        let kind = match name {
            Some(name) => Kind::Named(self.free_name(name)),
            None => Kind::ANY,
        };
        self.explored.push((form, kind));
        Begun(self.explored.len() - 1)
    }

    /// Ends the exploration of a type without a name.
    pub(crate) fn end(&mut self, begun: Begun, kind: &Kind) {
        self.explored[begun.0].1.clone_from(kind);
    }

    /// Ends the exploration of a type with a name.
    pub(crate) fn end_named(&mut self, begun: Begun, content: Content) -> Kind {
        let kind = self.explored[begun.0].1.clone();
        if let Kind::Named(name) = &kind {
            self.defined.push((name.clone(), content));
        }
        kind
    }

    /// Defines a type, unless it was defined before.
    fn define(&mut self, name: &str, content: Content) -> Kind {
        let same = |(known, parts): &&(String, Content)| {
            known.split('#').next() == Some(name) && *parts == content
        };
        if let Some((known, _)) = self.defined.iter().find(same) {
            return Kind::Named(known.clone());
        }
        let name = self.free_name(name);
        self.defined.push((name.clone(), content));
        Kind::Named(name)
    }

    /// The name, with a number after it if another type has the same name.
    fn free_name(&self, name: &str) -> String {
        let is_taken = |name: &String| {
            let mut explored = self.explored.iter();
            let reserved = |kind: &Kind| matches!(kind, Kind::Named(other) if other == name);
            self.get(name).is_some() || explored.any(|(_, kind)| reserved(kind))
        };
        let mut free = name.to_owned();
        let mut number = 2;
        while is_taken(&free) {
            free = format!("{name}#{number}");
            number += 1;
        }
        free
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
