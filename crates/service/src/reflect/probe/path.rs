//! A deserializer that follows a path into a type. Each type asks it for a form (a string, a
//! structure with these fields); the deserializer answers by the next step of the path, and notes
//! the form that is asked for at the path's end. Off the path, it makes small values.

use serde::Deserializer;
use serde::de::value::{Error, StrDeserializer};
use serde::de::{
    DeserializeSeed, EnumAccess, Error as _, IntoDeserializer, MapAccess, SeqAccess, VariantAccess,
    Visitor,
};

/// A step into a type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Step {
    /// The content of an option, of a type with one unnamed field, or of such a variant.
    Inside,
    /// An element of a list or of a tuple, and the number of elements.
    Element(usize, usize),
    Key,
    Value,
    Field(&'static str),
    Variant(&'static str),
}

/// The form that a type asks for, with the name of the visitor that takes it. That name differs for
/// types with the same name in two modules, and for two uses of a generic type. If two types also
/// share the visitor's name, the second one is described as the first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Form {
    seen: Seen,
    visitor: &'static str,
}

/// The form alone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Seen {
    Word(&'static str),
    Option,
    Newtype,
    List,
    Tuple(usize),
    Map,
    /// A structure, or the fields of a variant.
    Fields(&'static str, &'static [&'static str]),
    Variants(&'static str, &'static [&'static str]),
}

/// The deserializer at one place of a type.
pub(super) struct Probe<'a> {
    way: Way<'a>,
    /// Levels of values that may still be made, because a type may contain itself.
    depth: usize,
}

enum Way<'a> {
    Along(&'a [Step], &'a mut Option<Form>),
    Off,
}

/// The rest of the way, at a place that is not its end.
enum Next<'a> {
    Step(Step, Probe<'a>),
    /// A value must be made here.
    Make(Probe<'a>),
}

const DEPTH: usize = 32;

impl Form {
    pub(super) const fn seen(self) -> Seen {
        self.seen
    }
}

impl Seen {
    /// The name of a type that has fields or variants.
    pub(super) const fn name(self) -> Option<&'static str> {
        match self {
            Self::Fields(name, _) | Self::Variants(name, _) => Some(name),
            _ => None,
        }
    }
}

impl<'a> Probe<'a> {
    pub(super) const fn new(path: &'a [Step], seen: &'a mut Option<Form>) -> Self {
        Self {
            way: Way::Along(path, seen),
            depth: DEPTH,
        }
    }

    const fn off(depth: usize) -> Self {
        let way = Way::Off;
        Self { way, depth }
    }

    /// Takes the next step. At the end of the path, notes the form and the name of `V`, and fails.
    fn next<V>(self, seen: Seen) -> Result<Next<'a>, Error> {
        match self.way {
            Way::Along([], form) => {
                let visitor = std::any::type_name::<V>();
                *form = Some(Form { seen, visitor });
                Err(Error::custom("the end of the path"))
            }
            Way::Along([step, rest @ ..], seen) => {
                let way = Way::Along(rest, seen);
                let depth = self.depth;
                Ok(Next::Step(*step, Probe { way, depth }))
            }
            Way::Off => {
                let left = self.depth.checked_sub(1);
                let depth = left.ok_or_else(|| Error::custom("the type has no end"))?;
                Ok(Next::Make(Self::off(depth)))
            }
        }
    }
}

fn astray<T>() -> Result<T, Error> {
    Err(Error::custom("the type has no such part"))
}

/// Functions for types without parts. Each makes a value that most types accept.
macro_rules! words {
    ($($function:ident $word:literal $visit:ident($($value:expr)?);)*) => {$(
        fn $function<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            match self.next::<V>(Seen::Word($word))? {
                Next::Make(_) => visitor.$visit($($value)?),
                Next::Step(..) => astray(),
            }
        }
    )*};
}

impl<'de> Deserializer<'de> for Probe<'_> {
    type Error = Error;

    words! {
        deserialize_any "any" visit_unit();
        deserialize_ignored_any "any" visit_unit();
        deserialize_bool "bool" visit_bool(false);
        deserialize_u8 "u8" visit_u8(1);
        deserialize_u16 "u16" visit_u16(1);
        deserialize_u32 "u32" visit_u32(1);
        deserialize_u64 "u64" visit_u64(1);
        deserialize_u128 "u128" visit_u128(1);
        deserialize_i8 "i8" visit_i8(1);
        deserialize_i16 "i16" visit_i16(1);
        deserialize_i32 "i32" visit_i32(1);
        deserialize_i64 "i64" visit_i64(1);
        deserialize_i128 "i128" visit_i128(1);
        deserialize_f32 "f32" visit_f32(1.0);
        deserialize_f64 "f64" visit_f64(1.0);
        deserialize_char "char" visit_char('a');
        deserialize_str "string" visit_str("");
        deserialize_string "string" visit_str("");
        deserialize_identifier "string" visit_str("");
        deserialize_bytes "bytes" visit_bytes(b"");
        deserialize_byte_buf "bytes" visit_bytes(b"");
        deserialize_unit "()" visit_unit();
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.deserialize_unit(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.next::<V>(Seen::Option)? {
            Next::Step(Step::Inside, inner) => visitor.visit_some(inner),
            Next::Step(..) => astray(),
            Next::Make(_) => visitor.visit_none(),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self.next::<V>(Seen::Newtype)? {
            Next::Step(Step::Inside, inner) | Next::Make(inner) => {
                visitor.visit_newtype_struct(inner)
            }
            Next::Step(..) => astray(),
        }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.next::<V>(Seen::List)? {
            Next::Step(Step::Element(place, len), inner) => {
                visitor.visit_seq(Elements::to(place, len, inner))
            }
            Next::Step(..) => astray(),
            Next::Make(inner) => visitor.visit_seq(Elements::made(0, &inner)),
        }
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, Error> {
        match self.next::<V>(Seen::Tuple(len))? {
            Next::Step(Step::Element(place, len), inner) => {
                visitor.visit_seq(Elements::to(place, len, inner))
            }
            Next::Step(..) => astray(),
            Next::Make(inner) => visitor.visit_seq(Elements::made(len, &inner)),
        }
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        len: usize,
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.deserialize_tuple(len, visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.next::<V>(Seen::Map)? {
            Next::Step(Step::Key, inner) => visitor.visit_map(MapEntry::Key(inner)),
            Next::Step(Step::Value, inner) => {
                let key = Some(Probe::off(inner.depth));
                visitor.visit_map(MapEntry::Value(key, Some(inner)))
            }
            Next::Step(..) => astray(),
            Next::Make(_) => visitor.visit_map(MapEntry::Value(None, None)),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self.next::<V>(Seen::Fields(name, fields))? {
            Next::Step(Step::Field(name), inner) => visitor.visit_map(Fields::to(name, inner)),
            Next::Step(..) => astray(),
            Next::Make(inner) => visitor.visit_map(Fields::made(fields, &inner)),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self.next::<V>(Seen::Variants(name, variants))? {
            Next::Step(Step::Variant(name), inner) => visitor.visit_enum(Chosen(name, inner)),
            Next::Step(..) => astray(),
            Next::Make(inner) => match variants.first() {
                Some(name) => visitor.visit_enum(Chosen(name, inner)),
                None => astray(),
            },
        }
    }
}

/// The elements of a list or a tuple.
struct Elements<'a> {
    /// Elements to make before the one on the path.
    before: usize,
    len: usize,
    along: Option<Probe<'a>>,
    depth: usize,
}

impl<'a> Elements<'a> {
    const fn to(place: usize, len: usize, inner: Probe<'a>) -> Self {
        let depth = inner.depth;
        Self {
            before: place,
            len,
            along: Some(inner),
            depth,
        }
    }

    const fn made(len: usize, inner: &Probe<'_>) -> Self {
        Self {
            before: len,
            len,
            along: None,
            depth: inner.depth,
        }
    }
}

impl<'de> SeqAccess<'de> for Elements<'_> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Error> {
        if let Some(left) = self.before.checked_sub(1) {
            self.before = left;
            return seed.deserialize(Probe::off(self.depth)).map(Some);
        }
        let inner = self.along.take();
        inner.map(|inner| seed.deserialize(inner)).transpose()
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.len)
    }
}

/// The one entry of a map, or none.
enum MapEntry<'a> {
    Key(Probe<'a>),
    Value(Option<Probe<'a>>, Option<Probe<'a>>),
}

impl<'de> MapAccess<'de> for MapEntry<'_> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Error> {
        let key = match std::mem::replace(self, Self::Value(None, None)) {
            Self::Key(probe) => Some(probe),
            Self::Value(key, value) => {
                *self = Self::Value(None, value);
                key
            }
        };
        key.map(|key| seed.deserialize(key)).transpose()
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        match self {
            Self::Value(_, value) => match value.take() {
                Some(value) => seed.deserialize(value),
                None => astray(),
            },
            Self::Key(_) => astray(),
        }
    }
}

/// The fields of a structure: the one on the path, or all.
struct Fields<'a> {
    names: std::slice::Iter<'static, &'static str>,
    one: Option<&'static str>,
    along: Option<Probe<'a>>,
    depth: usize,
}

impl<'a> Fields<'a> {
    fn to(name: &'static str, inner: Probe<'a>) -> Self {
        let depth = inner.depth;
        Self {
            names: [].iter(),
            one: Some(name),
            along: Some(inner),
            depth,
        }
    }

    fn made(names: &'static [&'static str], inner: &Probe<'_>) -> Self {
        Self {
            names: names.iter(),
            one: None,
            along: None,
            depth: inner.depth,
        }
    }
}

impl<'de> MapAccess<'de> for Fields<'_> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Error> {
        let name = self.one.take().or_else(|| self.names.next().copied());
        name.map(|name| seed.deserialize(text(name))).transpose()
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        let depth = self.depth;
        seed.deserialize(self.along.take().unwrap_or(Probe::off(depth)))
    }
}

/// A variant of an enumeration.
struct Chosen<'a>(&'static str, Probe<'a>);

impl<'a, 'de> EnumAccess<'de> for Chosen<'a> {
    type Error = Error;
    type Variant = Probe<'a>;

    fn variant_seed<V: DeserializeSeed<'de>>(
        self,
        seed: V,
    ) -> Result<(V::Value, Probe<'a>), Error> {
        Ok((seed.deserialize(text(self.0))?, self.1))
    }
}

impl<'de> VariantAccess<'de> for Probe<'_> {
    type Error = Error;

    fn unit_variant(self) -> Result<(), Error> {
        match self.next::<()>(Seen::Word("()"))? {
            Next::Step(..) => astray(),
            Next::Make(_) => Ok(()),
        }
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Error> {
        match self.next::<T>(Seen::Newtype)? {
            Next::Step(Step::Inside, inner) | Next::Make(inner) => seed.deserialize(inner),
            Next::Step(..) => astray(),
        }
    }

    fn tuple_variant<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_tuple(len, visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.deserialize_struct("", fields, visitor)
    }
}

fn text(name: &'static str) -> StrDeserializer<'static, Error> {
    name.into_deserializer()
}
