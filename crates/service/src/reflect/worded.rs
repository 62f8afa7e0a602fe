//! A serializer around serde_json's, which writes the numbers that JSON does not have as strings:
//! serde_json would write them as `null`, like an option without a value. Called by `message.rs`.

use serde::ser::{
    Serialize, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple,
    SerializeTupleStruct, SerializeTupleVariant, Serializer,
};

/// A serializer, or a part of one.
pub(super) struct Worded<S>(pub(super) S);

/// A value inside another one.
struct Inside<'a, T: ?Sized>(&'a T);

impl<T: Serialize + ?Sized> Serialize for Inside<'_, T> {
    fn serialize<S: Serializer>(&self, inner: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(Worded(inner))
    }
}

/// Functions for values without parts.
macro_rules! forward {
    ($($function:ident($value:ty);)*) => {$(
        fn $function(self, value: $value) -> Result<S::Ok, S::Error> {
            self.0.$function(value)
        }
    )*};
}

impl<S: Serializer> Serializer for Worded<S> {
    type Ok = S::Ok;
    type Error = S::Error;
    type SerializeSeq = Worded<S::SerializeSeq>;
    type SerializeTuple = Worded<S::SerializeTuple>;
    type SerializeTupleStruct = Worded<S::SerializeTupleStruct>;
    type SerializeTupleVariant = Worded<S::SerializeTupleVariant>;
    type SerializeMap = Worded<S::SerializeMap>;
    type SerializeStruct = Worded<S::SerializeStruct>;
    type SerializeStructVariant = Worded<S::SerializeStructVariant>;

    forward! {
        serialize_bool(bool);
        serialize_i8(i8);
        serialize_i16(i16);
        serialize_i32(i32);
        serialize_i64(i64);
        serialize_i128(i128);
        serialize_u8(u8);
        serialize_u16(u16);
        serialize_u32(u32);
        serialize_u64(u64);
        serialize_u128(u128);
        serialize_char(char);
        serialize_str(&str);
        serialize_bytes(&[u8]);
        serialize_unit_struct(&'static str);
    }

    fn serialize_f32(self, value: f32) -> Result<S::Ok, S::Error> {
        match value.is_finite() {
            true => self.0.serialize_f32(value),
            false => self.0.collect_str(&value),
        }
    }

    fn serialize_f64(self, value: f64) -> Result<S::Ok, S::Error> {
        match value.is_finite() {
            true => self.0.serialize_f64(value),
            false => self.0.collect_str(&value),
        }
    }

    fn serialize_none(self) -> Result<S::Ok, S::Error> {
        self.0.serialize_none()
    }

    fn serialize_unit(self) -> Result<S::Ok, S::Error> {
        self.0.serialize_unit()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<S::Ok, S::Error> {
        self.0.serialize_some(&Inside(value))
    }

    fn serialize_unit_variant(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
    ) -> Result<S::Ok, S::Error> {
        self.0.serialize_unit_variant(name, index, variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        value: &T,
    ) -> Result<S::Ok, S::Error> {
        self.0.serialize_newtype_struct(name, &Inside(value))
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<S::Ok, S::Error> {
        let value = &Inside(value);
        self.0
            .serialize_newtype_variant(name, index, variant, value)
    }

    fn serialize_seq(self, len: Option<usize>) -> Result<Self::SerializeSeq, S::Error> {
        self.0.serialize_seq(len).map(Worded)
    }

    fn serialize_tuple(self, len: usize) -> Result<Self::SerializeTuple, S::Error> {
        self.0.serialize_tuple(len).map(Worded)
    }

    fn serialize_tuple_struct(
        self,
        name: &'static str,
        len: usize,
    ) -> Result<Self::SerializeTupleStruct, S::Error> {
        self.0.serialize_tuple_struct(name, len).map(Worded)
    }

    fn serialize_tuple_variant(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        len: usize,
    ) -> Result<Self::SerializeTupleVariant, S::Error> {
        let parts = self.0.serialize_tuple_variant(name, index, variant, len);
        parts.map(Worded)
    }

    fn serialize_map(self, len: Option<usize>) -> Result<Self::SerializeMap, S::Error> {
        self.0.serialize_map(len).map(Worded)
    }

    fn serialize_struct(
        self,
        name: &'static str,
        len: usize,
    ) -> Result<Self::SerializeStruct, S::Error> {
        self.0.serialize_struct(name, len).map(Worded)
    }

    fn serialize_struct_variant(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        len: usize,
    ) -> Result<Self::SerializeStructVariant, S::Error> {
        let parts = self.0.serialize_struct_variant(name, index, variant, len);
        parts.map(Worded)
    }

    fn is_human_readable(&self) -> bool {
        self.0.is_human_readable()
    }
}

/// Parts without names.
macro_rules! parts {
    ($($part:ident $function:ident;)*) => {$(
        impl<S: $part> $part for Worded<S> {
            type Ok = S::Ok;
            type Error = S::Error;

            fn $function<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), S::Error> {
                self.0.$function(&Inside(value))
            }

            fn end(self) -> Result<S::Ok, S::Error> {
                self.0.end()
            }
        }
    )*};
}

/// Parts with names.
macro_rules! fields {
    ($($part:ident)*) => {$(
        impl<S: $part> $part for Worded<S> {
            type Ok = S::Ok;
            type Error = S::Error;

            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                key: &'static str,
                value: &T,
            ) -> Result<(), S::Error> {
                self.0.serialize_field(key, &Inside(value))
            }

            fn skip_field(&mut self, key: &'static str) -> Result<(), S::Error> {
                self.0.skip_field(key)
            }

            fn end(self) -> Result<S::Ok, S::Error> {
                self.0.end()
            }
        }
    )*};
}

parts! {
    SerializeSeq serialize_element;
    SerializeTuple serialize_element;
    SerializeTupleStruct serialize_field;
    SerializeTupleVariant serialize_field;
}

fields!(SerializeStruct SerializeStructVariant);

impl<S: SerializeMap> SerializeMap for Worded<S> {
    type Ok = S::Ok;
    type Error = S::Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), S::Error> {
        self.0.serialize_key(&Inside(key))
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), S::Error> {
        self.0.serialize_value(&Inside(value))
    }

    fn end(self) -> Result<S::Ok, S::Error> {
        self.0.end()
    }
}
