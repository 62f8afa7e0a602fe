//! [`InJson`]: the messages of each codec as JSON. Types of serde decide themselves which JSON they
//! accept; those of a fixed layout have a `Shape`.

use serde::de::DeserializeOwned;

use super::kind::{Kind, Types};
use super::misfit::{Look, Misfit, compare, parse};
use super::probe;

/// A message of the codec `C` that JSON can represent. For a codec of your own, implement it for
/// its messages: `impl InJson<Text> for String`.
#[diagnostic::on_unimplemented(
    message = "messages of `{C}` with the type `{Self}` have no form in JSON",
    label = "a method of a service with `reflect` has this message",
    note = "types of `Fixed` and `Growing` derive `Shape`; those of `Postcard` and `Prost` derive \
            serde's `Serialize` and `Deserialize`; for a codec of your own, implement `InJson`"
)]
pub trait InJson<C>: Sized {
    /// The type, for people. Adds the definitions of named types.
    fn kind(types: &mut Types) -> Kind;

    /// Reads a value.
    ///
    /// # Errors
    /// If the text is no value of this type.
    fn from_json(json: &str) -> Result<Self, Misfit>;

    /// Writes the value; `None` if it has no form in JSON.
    fn to_json(&self) -> Option<String>;
}

/// The type `T` of serde's, for implementations of [`InJson`]. Adds the definitions of named types.
pub fn kind_of<T: DeserializeOwned>(types: &mut Types) -> Kind {
    probe::kind_of::<T>(types)
}

/// Reads a value of a type of serde's, for implementations of [`InJson`]. Serde passes over fields
/// that it does not know; here, they are an error.
///
/// # Errors
/// If the text is no value of this type.
pub fn from_json<T: DeserializeOwned>(json: &str) -> Result<T, Misfit> {
    let value = parse(json)?;
    let mut types = Types::default();
    let kind = kind_of::<T>(&mut types);
    compare(&types, &kind, &value, Look::Unknown)?;
    // From the text, because a `Value` rounds integers above 64 bits. Serde has the last word: a
    // type may accept more than its fields show. But its errors seldom name the field.
    serde_json::from_str(json).map_err(|error| {
        let explained = compare(&types, &kind, &value, Look::All);
        let explained = explained.err();
        explained.unwrap_or_else(|| Misfit::new(error.to_string()))
    })
}

#[cfg(feature = "postcard")]
impl<T: serde::Serialize + DeserializeOwned> InJson<crate::Postcard> for T {
    fn kind(types: &mut Types) -> Kind {
        kind_of::<T>(types)
    }

    fn from_json(json: &str) -> Result<Self, Misfit> {
        from_json(json)
    }

    fn to_json(&self) -> Option<String> {
        serde_json::to_string(self).ok()
    }
}

#[cfg(feature = "prost")]
impl<T: serde::Serialize + DeserializeOwned> InJson<crate::Prost> for T {
    fn kind(types: &mut Types) -> Kind {
        kind_of::<T>(types)
    }

    fn from_json(json: &str) -> Result<Self, Misfit> {
        from_json(json)
    }

    fn to_json(&self) -> Option<String> {
        serde_json::to_string(self).ok()
    }
}

#[cfg(feature = "fixed")]
impl<T: super::Shape> InJson<crate::Fixed> for T {
    fn kind(types: &mut Types) -> Kind {
        T::kind(types)
    }

    fn from_json(json: &str) -> Result<Self, Misfit> {
        of_shape(json)
    }

    fn to_json(&self) -> Option<String> {
        Some(shown(self))
    }
}

#[cfg(feature = "fixed")]
impl<T: super::Shape, const OLDEST: usize> InJson<crate::Growing<OLDEST>> for T {
    fn kind(types: &mut Types) -> Kind {
        T::kind(types)
    }

    fn from_json(json: &str) -> Result<Self, Misfit> {
        of_shape(json)
    }

    fn to_json(&self) -> Option<String> {
        Some(shown(self))
    }
}

#[cfg(feature = "fixed")]
fn of_shape<T: super::Shape>(json: &str) -> Result<T, Misfit> {
    let value = parse(json)?;
    let mut types = Types::default();
    let kind = T::kind(&mut types);
    compare(&types, &kind, &value, Look::All)?;
    let misfit = || Misfit::new(format!("expected {kind}"));
    T::read(&value).ok_or_else(misfit)
}

#[cfg(feature = "fixed")]
fn shown(value: &impl super::Shape) -> String {
    let mut json = String::new();
    value.write(&mut json);
    json
}
