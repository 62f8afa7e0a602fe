//! Keys and values on the command line and in the output of the stores. Bytes that are not text
//! stay unchanged: `--hex` takes and shows hexadecimal digits, and JSON has such bytes in fields of
//! their own. Used by `index` and `replica`.

use std::borrow::Cow;
use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::misuse::Misuse;

/// The form of keys and values.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct Form {
    /// Take keys, and show keys and values, as hexadecimal digits. Without this option, bytes are
    /// taken and shown unchanged; in JSON, bytes that are not text are hexadecimal digits in
    /// `key_hex` and `value_hex`
    #[arg(long)]
    hex: bool,
}

impl Form {
    /// The bytes of a key on the command line.
    ///
    /// # Errors
    /// The text should be hexadecimal digits, and is not.
    pub(crate) fn read(self, text: &str) -> anyhow::Result<Vec<u8>> {
        match self.hex {
            false => Ok(text.as_bytes().to_vec()),
            true => bytes_of(text).ok_or_else(|| {
                Misuse(format!("`{text}`: --hex takes pairs of hexadecimal digits")).into()
            }),
        }
    }

    /// Bytes for the standard output.
    pub(crate) fn show(self, bytes: &[u8]) -> Cow<'_, [u8]> {
        match self.hex {
            false => Cow::Borrowed(bytes),
            true => Cow::Owned(digits_of(bytes).into_bytes()),
        }
    }

    /// Adds bytes to a JSON object: as text under a name, or as hexadecimal digits under the name
    /// with `_hex`.
    pub(crate) fn add(self, object: &mut Value, name: &str, bytes: &[u8]) {
        match std::str::from_utf8(bytes) {
            Ok(text) if !self.hex => object[name] = json!(text),
            _ => object[format!("{name}_hex")] = json!(digits_of(bytes)),
        }
    }

    /// Prints to the standard error that the output ends before the last item, and the option with
    /// which the command goes on.
    pub(crate) fn note_more(self, option: &str, key: &[u8]) {
        let option = self.argument(option, key);
        eprintln!("dunlin: more items follow; go on with {option}");
    }

    /// An option with a key as its value, in the form in which a shell takes it.
    fn argument(self, option: &str, key: &[u8]) -> String {
        let is_plain = |it: char| it.is_alphanumeric() || "-_./:@%+,".contains(it);
        let text = std::str::from_utf8(key).ok();
        match text.filter(|it| !it.contains(char::is_control)) {
            _ if self.hex => format!("{option}={}", digits_of(key)),
            None => format!("{option}={} and --hex", digits_of(key)),
            Some(text) if text.chars().all(is_plain) => format!("{option}={text}"),
            Some(text) => format!("{option}='{}'", text.replace('\'', r"'\''")),
        }
    }
}

fn digits_of(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut digits, byte| {
        let _ = write!(digits, "{byte:02x}");
        digits
    })
}

fn bytes_of(digits: &str) -> Option<Vec<u8>> {
    let digit = |byte: &u8| char::from(*byte).to_digit(16);
    let byte = |pair: &[u8]| {
        let [high, low] = pair else {
            return None;
        };
        u8::try_from(digit(high)? << 4 | digit(low)?).ok()
    };
    digits.as_bytes().chunks(2).map(byte).collect()
}

#[cfg(test)]
mod tests;
