//! [`InJson`]: the messages of each codec as JSON. Types of serde decide themselves which JSON they
//! accept; those of a fixed layout have a `Shape`.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::kind::{Kind, Types};
use super::misfit::{Look, Misfit, compare};
use super::probe;
use super::value::{no_json, parse, refuse_empty};
use super::worded::Worded;
use crate::bounded::Watch;

/// The most bytes of text that become a `Value`, which takes up to 80 times as many.
const LONGEST: usize = 1 << 20;

/// The most bytes of text for each byte of a message of a fixed layout, if it is large.
#[cfg(feature = "fixed")]
const TEXT_OF_BYTE: usize = 8;

/// A message of the codec `C` that JSON can represent. For a codec of your own, implement it for
/// its messages: `impl InJson<Text> for String`.
#[diagnostic::on_unimplemented(
    message = "messages of `{C}` with the type `{Self}` have no form in JSON",
    label = "a method of a service with `reflect` has this message",
    note = "types of `Fixed` and `Growing` derive `Shape`; those of `Postcard` and `Prost` derive \
            serde's `Serialize` and `Deserialize`; for a codec of your own, implement `InJson`"
)]
pub trait InJson<C>: Sized {
    /// Describes the type for people. Adds the definitions of named types.
    fn kind(types: &mut Types) -> Kind;

    /// Reads a value.
    ///
    /// # Errors
    /// If the text is not a value of this type.
    fn from_json(json: &str) -> Result<Self, Misfit>;

    /// Writes the value; `None` if it has no form in JSON.
    fn to_json(&self) -> Option<String>;
}

/// The type `T`, which serde knows, for implementations of [`InJson`]. Adds the definitions of
/// named types.
pub fn kind_of<T: DeserializeOwned>(types: &mut Types) -> Kind {
    probe::kind_of::<T>(types)
}

/// Reads a value of a type that serde knows, for implementations of [`InJson`]. Serde passes over
/// fields that it does not know; here, they are an error.
///
/// # Errors
/// If the text is not a value of this type.
pub fn from_json<T: DeserializeOwned>(json: &str) -> Result<T, Misfit> {
    refuse_empty(json)?;
    let mut reader = serde_json::Deserializer::from_str(json);
    let watch = Watch::of_text();
    let value = T::deserialize(watch.around(&mut reader));
    match value.and_then(|value| reader.end().map(|()| value)) {
        Ok(_) if watch.has_passed_over() => {
            let unknown = "a field is unknown".to_owned();
            Err(explain::<T>(json, Look::Unknown, unknown))
        }
        Ok(value) => Ok(value),
        Err(error) if error.is_data() => {
            let error = error.to_string();
            Err(explain::<T>(json, Look::Serde(&error), error.clone()))
        }
        Err(error) => Err(no_json(&error)),
    }
}

/// Writes a value of a type that serde knows, for implementations of [`InJson`]. Numbers that JSON
/// does not have are the strings `NaN`, `inf` and `-inf`.
pub fn to_json<T: Serialize + ?Sized>(value: &T) -> Option<String> {
    let mut json = Vec::new();
    let mut writer = serde_json::Serializer::new(&mut json);
    value.serialize(Worded(&mut writer)).ok()?;
    String::from_utf8(json).ok()
}

/// Finds the place at which JSON differs from `T`, because serde's errors rarely name the field. A
/// type may accept other JSON than its fields show; if no difference is found, the reason is
/// `otherwise`.
fn explain<T: DeserializeOwned>(json: &str, look: Look<'_>, otherwise: String) -> Misfit {
    let compared = || {
        let mut types = Types::default();
        let kind = kind_of::<T>(&mut types);
        compare(&types, &kind, &parse(json)?, look)
    };
    let compared = match json.len() <= LONGEST {
        true => compared(),
        false => Ok(()),
    };
    compared.err().unwrap_or_else(|| Misfit::new(otherwise))
}

#[cfg(feature = "postcard")]
impl<T: Serialize + DeserializeOwned> InJson<crate::Postcard> for T {
    fn kind(types: &mut Types) -> Kind {
        kind_of::<T>(types)
    }

    fn from_json(json: &str) -> Result<Self, Misfit> {
        from_json(json)
    }

    fn to_json(&self) -> Option<String> {
        to_json(self)
    }
}

#[cfg(feature = "prost")]
impl<T: Serialize + DeserializeOwned> InJson<crate::Prost> for T {
    fn kind(types: &mut Types) -> Kind {
        kind_of::<T>(types)
    }

    fn from_json(json: &str) -> Result<Self, Misfit> {
        from_json(json)
    }

    fn to_json(&self) -> Option<String> {
        to_json(self)
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
    let longest = LONGEST.max(size_of::<T>().saturating_mul(TEXT_OF_BYTE));
    if json.len() > longest {
        let reason = format!("the argument has more than {longest} bytes");
        return Err(Misfit::new(reason));
    }
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

#[cfg(test)]
mod tests;
