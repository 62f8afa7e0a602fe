//! A deserializer around another one, with limits for the work that a peer's bytes can cause. A
//! message of a type that contains itself is decoded by recursion, so [`LEVELS`] limits its depth,
//! as for JSON. The number of elements without bytes (`Vec<()>`) is limited too. It also notes
//! fields that a type does not have, and refuses numbers that are no `f32`.
//!
//! Only options, lists, maps and enumerations count as levels: a type cannot contain itself without
//! one of them. The level is an argument, so the compiler computes it for types that do not contain
//! themselves. Callers: `codec/postcard.rs` and `reflect/message.rs`.

mod float;

use std::cell::Cell;
use std::fmt;

use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, Error, MapAccess, SeqAccess, VariantAccess, Visitor,
};

use float::Float;
#[cfg(feature = "reflect")]
pub(crate) use float::{fits_f32, not_finite};

/// The most levels of options, lists, maps and enumerations in a message: the limit of serde_json.
pub(crate) const LEVELS: u8 = 128;

/// Elements without bytes that a message may have.
#[cfg(feature = "postcard")]
const EMPTY_ELEMENTS: usize = 4096;

/// The limits of one message, and what its type has passed over.
#[derive(Debug)]
pub(crate) struct Watch {
    /// Elements of lists and maps that may still come.
    elements: Cell<usize>,
    /// Whether the type has passed over a field.
    passed_over: Cell<bool>,
}

/// A deserializer, or a part of one: a seed, a visitor, or the access to an enumeration.
pub(crate) struct Bounded<'a, T> {
    inner: T,
    /// Levels that may still come.
    levels: u8,
    watch: &'a Watch,
}

/// The visitor of a list or a map, whose elements count.
struct Counted<'a, V>(Bounded<'a, V>);

/// The elements of a list, a map, a tuple or a structure.
struct Elements<'a, A> {
    access: Bounded<'a, A>,
    /// Whether each element counts, because their number was not known at first.
    count: bool,
}

impl Watch {
    /// The limits of a message with this number of bytes. Elements of lists and maps share no byte,
    /// so at most `len` of them have bytes, and all others are elements without bytes.
    #[cfg(feature = "postcard")]
    pub(crate) const fn of_bytes(len: usize) -> Self {
        Self {
            elements: Cell::new(len.saturating_add(EMPTY_ELEMENTS)),
            passed_over: Cell::new(false),
        }
    }

    /// The limits of text, in which each element has characters.
    #[cfg(feature = "reflect")]
    pub(crate) const fn of_text() -> Self {
        Self {
            elements: Cell::new(usize::MAX),
            passed_over: Cell::new(false),
        }
    }

    /// Applies the limits to what a deserializer reads.
    #[inline]
    pub(crate) const fn around<D>(&self, inner: D) -> Bounded<'_, D> {
        Bounded {
            inner,
            levels: LEVELS,
            watch: self,
        }
    }

    /// Whether the type has passed over a field, because it has none of this name.
    #[cfg(feature = "reflect")]
    pub(crate) const fn has_passed_over(&self) -> bool {
        self.passed_over.get()
    }

    #[inline]
    fn spend<E: Error>(&self, elements: usize) -> Result<(), E> {
        let left = self.elements.get().checked_sub(elements);
        self.elements
            .set(left.ok_or_else(|| E::custom("more elements than bytes"))?);
        Ok(())
    }
}

impl<'a, T> Bounded<'a, T> {
    #[inline]
    fn around<U>(&self, inner: U) -> Bounded<'a, U> {
        let (levels, watch) = (self.levels, self.watch);
        Bounded {
            inner,
            levels,
            watch,
        }
    }

    #[inline]
    fn below<U, E: Error>(&self, inner: U) -> Result<Bounded<'a, U>, E> {
        let levels = self.levels.checked_sub(1);
        Ok(Bounded {
            inner,
            levels: levels.ok_or_else(|| E::custom("more than 128 levels"))?,
            watch: self.watch,
        })
    }

    #[inline]
    fn elements<A>(&self, access: A) -> Elements<'a, A> {
        let access = self.around(access);
        Elements {
            access,
            count: false,
        }
    }
}

impl<'a, V> Counted<'a, V> {
    /// The elements of a list or a map with this number of them, if it is known.
    #[inline]
    fn elements<A, E: Error>(&self, access: A, len: Option<usize>) -> Result<Elements<'a, A>, E> {
        self.0.watch.spend(len.unwrap_or(0))?;
        let access = self.0.around(access);
        let count = len.is_none();
        Ok(Elements { access, count })
    }
}

/// Functions for values without parts.
macro_rules! forward {
    ($($function:ident)*) => {$(
        #[inline]
        fn $function<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
            self.inner.$function(visitor)
        }
    )*};
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Bounded<'_, D> {
    type Error = D::Error;

    forward! {
        deserialize_any deserialize_bool deserialize_u8 deserialize_u16 deserialize_u32
        deserialize_u64 deserialize_u128 deserialize_i8 deserialize_i16 deserialize_i32
        deserialize_i64 deserialize_i128 deserialize_char deserialize_str
        deserialize_string deserialize_bytes deserialize_byte_buf deserialize_unit
        deserialize_identifier
    }

    #[inline]
    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        let visitor = Float {
            inner: visitor,
            is_narrow: true,
        };
        // In text, the number may be a string.
        match self.inner.is_human_readable() {
            true => self.inner.deserialize_any(visitor),
            false => self.inner.deserialize_f32(visitor),
        }
    }

    #[inline]
    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        let visitor = Float {
            inner: visitor,
            is_narrow: false,
        };
        match self.inner.is_human_readable() {
            true => self.inner.deserialize_any(visitor),
            false => self.inner.deserialize_f64(visitor),
        }
    }

    #[inline]
    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.watch.passed_over.set(true);
        self.inner.deserialize_ignored_any(visitor)
    }

    #[inline]
    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        let visitor = self.below(visitor)?;
        self.inner.deserialize_option(visitor)
    }

    #[inline]
    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.inner.deserialize_unit_struct(name, visitor)
    }

    #[inline]
    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        let visitor = self.around(visitor);
        self.inner.deserialize_newtype_struct(name, visitor)
    }

    #[inline]
    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        let visitor = Counted(self.below(visitor)?);
        self.inner.deserialize_seq(visitor)
    }

    #[inline]
    fn deserialize_tuple<V: Visitor<'de>>(
        self,
        len: usize,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        let visitor = self.around(visitor);
        self.inner.deserialize_tuple(len, visitor)
    }

    #[inline]
    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        len: usize,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        let visitor = self.around(visitor);
        self.inner.deserialize_tuple_struct(name, len, visitor)
    }

    #[inline]
    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        let visitor = Counted(self.below(visitor)?);
        self.inner.deserialize_map(visitor)
    }

    #[inline]
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        let visitor = self.around(visitor);
        self.inner.deserialize_struct(name, fields, visitor)
    }

    #[inline]
    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        let visitor = self.below(visitor)?;
        self.inner.deserialize_enum(name, variants, visitor)
    }

    #[inline]
    fn is_human_readable(&self) -> bool {
        self.inner.is_human_readable()
    }
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Bounded<'_, V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.expecting(f)
    }

    #[inline]
    fn visit_none<E: Error>(self) -> Result<V::Value, E> {
        self.inner.visit_none()
    }

    #[inline]
    fn visit_unit<E: Error>(self) -> Result<V::Value, E> {
        self.inner.visit_unit()
    }

    #[inline]
    fn visit_some<D: Deserializer<'de>>(self, inner: D) -> Result<V::Value, D::Error> {
        let inner = self.around(inner);
        self.inner.visit_some(inner)
    }

    #[inline]
    fn visit_newtype_struct<D: Deserializer<'de>>(self, inner: D) -> Result<V::Value, D::Error> {
        let inner = self.around(inner);
        self.inner.visit_newtype_struct(inner)
    }

    #[inline]
    fn visit_seq<A: SeqAccess<'de>>(self, access: A) -> Result<V::Value, A::Error> {
        let access = self.elements(access);
        self.inner.visit_seq(access)
    }

    #[inline]
    fn visit_map<A: MapAccess<'de>>(self, access: A) -> Result<V::Value, A::Error> {
        let access = self.elements(access);
        self.inner.visit_map(access)
    }

    #[inline]
    fn visit_enum<A: EnumAccess<'de>>(self, access: A) -> Result<V::Value, A::Error> {
        let access = self.around(access);
        self.inner.visit_enum(access)
    }
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Counted<'_, V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.inner.expecting(f)
    }

    #[inline]
    fn visit_seq<A: SeqAccess<'de>>(self, access: A) -> Result<V::Value, A::Error> {
        let len = access.size_hint();
        let access = self.elements(access, len)?;
        self.0.inner.visit_seq(access)
    }

    #[inline]
    fn visit_map<A: MapAccess<'de>>(self, access: A) -> Result<V::Value, A::Error> {
        let len = access.size_hint();
        let access = self.elements(access, len)?;
        self.0.inner.visit_map(access)
    }
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Bounded<'_, S> {
    type Value = S::Value;

    #[inline]
    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<S::Value, D::Error> {
        let from = self.around(from);
        self.inner.deserialize(from)
    }
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for Elements<'_, A> {
    type Error = A::Error;

    #[inline]
    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, A::Error> {
        self.access.watch.spend(usize::from(self.count))?;
        let seed = self.access.around(seed);
        self.access.inner.next_element_seed(seed)
    }

    #[inline]
    fn size_hint(&self) -> Option<usize> {
        self.access.inner.size_hint()
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Elements<'_, A> {
    type Error = A::Error;

    #[inline]
    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, A::Error> {
        self.access.watch.spend(usize::from(self.count))?;
        let seed = self.access.around(seed);
        self.access.inner.next_key_seed(seed)
    }

    #[inline]
    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        let seed = self.access.around(seed);
        self.access.inner.next_value_seed(seed)
    }

    #[inline]
    fn size_hint(&self) -> Option<usize> {
        self.access.inner.size_hint()
    }
}

impl<'a, 'de, A: EnumAccess<'de>> EnumAccess<'de> for Bounded<'a, A> {
    type Error = A::Error;
    type Variant = Bounded<'a, A::Variant>;

    #[inline]
    fn variant_seed<S: DeserializeSeed<'de>>(
        self,
        seed: S,
    ) -> Result<(S::Value, Self::Variant), A::Error> {
        let (levels, watch) = (self.levels, self.watch);
        let (value, inner) = self.inner.variant_seed(seed)?;
        let variant = Bounded {
            inner,
            levels,
            watch,
        };
        Ok((value, variant))
    }
}

impl<'de, A: VariantAccess<'de>> VariantAccess<'de> for Bounded<'_, A> {
    type Error = A::Error;

    #[inline]
    fn unit_variant(self) -> Result<(), A::Error> {
        self.inner.unit_variant()
    }

    #[inline]
    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, A::Error> {
        let seed = self.around(seed);
        self.inner.newtype_variant_seed(seed)
    }

    #[inline]
    fn tuple_variant<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, A::Error> {
        let visitor = self.around(visitor);
        self.inner.tuple_variant(len, visitor)
    }

    #[inline]
    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, A::Error> {
        let visitor = self.around(visitor);
        self.inner.struct_variant(fields, visitor)
    }
}
