//! Finds the fields of a type that implements serde's `Deserialize`, without a value of the type. A
//! deserializer follows a path into the type: a field, a field of that field, and so on. At the end
//! of the path it notes what the type asks for, and fails. So no value is ever made, except for the
//! elements of a tuple before the one on the path.
//!
//! A type that does not ask for its parts (an untagged enumeration, say) is `any`.

mod path;

use std::panic::{AssertUnwindSafe, catch_unwind};

use serde::de::DeserializeOwned;

use super::kind::{Begun, Content, Field, Kind, Parts, Types, Variant};
pub(crate) use path::Form;
use path::{Probe, Seen, Step};

/// The most questions about one type. Parts of it that need more are `any`.
const MOST: usize = 20_000;

/// The most steps from a type to one of its parts. Deeper parts are `any`.
const DEEPEST: usize = 64;

/// Tuples of serde have at most this many elements; longer ones are arrays.
const LONGEST_TUPLE: usize = 16;

/// The type `T`; adds the definitions of named types.
pub(super) fn kind_of<T: DeserializeOwned>(types: &mut Types) -> Kind {
    let ask = |path: &[Step]| {
        let mut seen = None;
        // It always fails: at the end of the path, or because the type does not follow it. A type
        // may also panic, because the values that it gets are not values of a program.
        let asked = || drop(T::deserialize(Probe::new(path, &mut seen)));
        let _ = catch_unwind(AssertUnwindSafe(asked));
        seen
    };
    let mut explorer = Explorer {
        ask: &ask,
        left: MOST,
        path: Vec::new(),
        types,
    };
    explorer.kind()
}

struct Explorer<'a> {
    ask: &'a dyn Fn(&[Step]) -> Option<Form>,
    /// Questions that may still be asked.
    left: usize,
    path: Vec<Step>,
    types: &'a mut Types,
}

impl Explorer<'_> {
    fn kind(&mut self) -> Kind {
        let Some(form) = self.look() else {
            return Kind::ANY;
        };
        if let Some(kind) = self.types.explored(form) {
            return kind.clone();
        }
        let begun = self.types.begin(form, form.seen().name());
        let kind = match form.seen() {
            Seen::Word(word) => Kind::Word(word),
            Seen::Option => Kind::Option(Box::new(self.inside(Step::Inside))),
            Seen::Newtype => self.inside(Step::Inside),
            Seen::List => Kind::List(Box::new(self.inside(Step::Element(0, 1)))),
            Seen::Tuple(len) => self.tuple(len),
            Seen::Map => {
                let key = self.inside(Step::Key);
                let value = self.inside(Step::Value);
                Kind::Map(Box::new(key), Box::new(value))
            }
            Seen::Fields(_, fields) => return self.structure(begun, fields),
            Seen::Variants(_, variants) => return self.enumeration(begun, variants),
        };
        self.types.end(begun, &kind);
        kind
    }

    fn look(&mut self) -> Option<Form> {
        self.left = self.left.checked_sub(1)?;
        match self.path.len() < DEEPEST {
            true => (self.ask)(&self.path),
            false => None,
        }
    }

    fn structure(&mut self, begun: Begun, names: &'static [&'static str]) -> Kind {
        let content = Content::Fields(self.fields(names));
        self.types.end_named(begun, content)
    }

    fn enumeration(&mut self, begun: Begun, names: &'static [&'static str]) -> Kind {
        let all = names.iter().map(|name| self.variant(name));
        let content = Content::Variants(all.collect());
        self.types.end_named(begun, content)
    }

    fn inside(&mut self, step: Step) -> Kind {
        self.path.push(step);
        let kind = self.kind();
        self.path.pop();
        kind
    }

    fn fields(&mut self, names: &'static [&'static str]) -> Vec<Field> {
        let field = |name: &&'static str| Field::new(name, self.inside(Step::Field(name)));
        names.iter().map(field).collect()
    }

    fn tuple(&mut self, len: usize) -> Kind {
        let first = self.inside(Step::Element(0, len));
        if len > LONGEST_TUPLE {
            return Kind::Array(Box::new(first), len);
        }
        let rest = (1..len).map(|place| self.inside(Step::Element(place, len)));
        let kinds: Vec<_> = std::iter::once(first).chain(rest).take(len).collect();
        match &kinds[..] {
            [first, _, ..] if kinds.iter().all(|kind| kind == first) => {
                Kind::Array(Box::new(first.clone()), len)
            }
            _ => Kind::Tuple(kinds),
        }
    }

    fn variant(&mut self, name: &'static str) -> Variant {
        self.path.push(Step::Variant(name));
        let parts = match self.look().map(Form::seen) {
            Some(Seen::Word("()")) => Parts::Unit,
            Some(Seen::Tuple(len)) => Parts::Value(self.tuple(len)),
            Some(Seen::Fields(_, fields)) => Parts::Fields(self.fields(fields)),
            Some(_) => Parts::Value(self.inside(Step::Inside)),
            None => Parts::Value(Kind::ANY),
        };
        self.path.pop();
        Variant { name, parts }
    }
}

#[cfg(test)]
mod tests;
