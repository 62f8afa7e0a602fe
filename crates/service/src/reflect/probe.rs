//! Finds the fields of a type that serde knows, without a value of it. A deserializer follows a
//! path into the type, from a field to a field of that, notes what the type asks for at the end,
//! and gives up. So no value is ever made, except of the elements of a tuple that come before the
//! one on the path.
//!
//! A type that does not ask for its parts (an untagged enumeration, say) is `any`.

mod path;

use serde::de::DeserializeOwned;

use super::kind::{Content, Field, Kind, Parts, Types, Variant};
use path::{Probe, Seen, Step};

/// Most questions to one type: after them, parts of it are `any`.
const MOST: usize = 20_000;

/// Most steps of a path. A type without a name that contains itself has no end: `struct T(Vec<T>)`.
const DEEPEST: usize = 64;

/// Tuples of serde have at most this many elements; longer ones are arrays.
const LONGEST_TUPLE: usize = 16;

/// The type `T`; adds the definitions of named types.
pub(super) fn kind_of<T: DeserializeOwned>(types: &mut Types) -> Kind {
    let ask = |path: &[Step]| {
        let mut seen = None;
        // It always fails: at the end of the path, or because the type does not follow it.
        let _ = T::deserialize(Probe::new(path, &mut seen));
        seen
    };
    let mut explorer = Explorer {
        ask: &ask,
        left: MOST,
        path: Vec::new(),
        open: Vec::new(),
        types,
    };
    explorer.kind()
}

struct Explorer<'a> {
    ask: &'a dyn Fn(&[Step]) -> Option<Seen>,
    /// Questions that may still be asked.
    left: usize,
    path: Vec<Step>,
    /// The named types on the path, with their fields or variants. A type that stands there already
    /// contains itself.
    open: Vec<(&'static str, &'static [&'static str])>,
    types: &'a mut Types,
}

impl Explorer<'_> {
    fn kind(&mut self) -> Kind {
        match self.look() {
            None => Kind::ANY,
            Some(Seen::Word(word)) => Kind::Word(word),
            Some(Seen::Option) => Kind::Option(Box::new(self.inside(Step::Inside))),
            Some(Seen::Newtype) => self.inside(Step::Inside),
            Some(Seen::List) => Kind::List(Box::new(self.inside(Step::Element(0, 1)))),
            Some(Seen::Tuple(len)) => self.tuple(len),
            Some(Seen::Map) => {
                let key = self.inside(Step::Key);
                let value = self.inside(Step::Value);
                Kind::Map(Box::new(key), Box::new(value))
            }
            Some(Seen::Fields(name, fields)) => self.named(name, fields, |explorer| {
                Content::Fields(explorer.fields(fields))
            }),
            Some(Seen::Variants(name, variants)) => self.named(name, variants, |explorer| {
                let all = variants.iter().map(|name| explorer.variant(name));
                Content::Variants(all.collect())
            }),
        }
    }

    fn look(&mut self) -> Option<Seen> {
        self.left = self.left.checked_sub(1)?;
        (self.path.len() <= DEEPEST).then(|| (self.ask)(&self.path))?
    }

    fn inside(&mut self, step: Step) -> Kind {
        self.path.push(step);
        let kind = self.kind();
        self.path.pop();
        kind
    }

    fn named(
        &mut self,
        name: &'static str,
        parts: &'static [&'static str],
        content: impl FnOnce(&mut Self) -> Content,
    ) -> Kind {
        if self.open.contains(&(name, parts)) {
            return Kind::Named(name.to_owned());
        }
        self.open.push((name, parts));
        let content = content(self);
        self.open.pop();
        self.types.define(name, content)
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
        let parts = match self.look() {
            Some(Seen::Word("()")) | None => Parts::Unit,
            Some(Seen::Tuple(len)) => Parts::Value(self.tuple(len)),
            Some(Seen::Fields(_, fields)) => Parts::Fields(self.fields(fields)),
            Some(_) => Parts::Value(self.inside(Step::Inside)),
        };
        self.path.pop();
        Variant { name, parts }
    }
}
