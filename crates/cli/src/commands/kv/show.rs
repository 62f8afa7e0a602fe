//! Items and figures, for people and for programs.

use std::fmt::Write as _;

use dunlin::kv::store::Mode;
use dunlin::kv::{Figures, Item};
use serde_json::{Map as Object, Value, json};

/// A mode, as flags name it.
pub(super) const fn mode(mode: Mode) -> &'static str {
    match mode {
        Mode::Cache => "cache",
        Mode::Store => "store",
    }
}

/// Figures as an object.
pub(super) fn object(figures: &Figures) -> Value {
    let fields = figures.named().into_iter();
    let fields = fields.map(|(name, figure)| (name.to_owned(), json!(figure)));
    Value::Object(fields.collect::<Object<String, Value>>())
}

/// Figures of all partitions, a line each, and their sum.
pub(super) fn table(all: &[Figures]) -> String {
    let sum = all.iter().fold(Figures::default(), |sum, it| sum.plus(*it));
    let mut text = String::new();
    for (place, (name, total)) in sum.named().into_iter().enumerate() {
        let _ = write!(text, "{name:<12} {total:>16}");
        if all.len() > 1 {
            for figures in all {
                let _ = write!(text, " {:>12}", figures.named()[place].1);
            }
        }
        text.push('\n');
    }
    text
}

/// An item; `None`: there is none. A value that is not text is shown in hexadecimal.
pub(super) fn item(key: &str, item: Option<&Item>) -> Value {
    let Some(item) = item else {
        return json!({ "key": key, "found": false });
    };
    let mut object = json!({
        "key": key,
        "found": true,
        "flags": item.flags,
        "version": item.version,
        "ttl": item.lifetime,
    });
    match std::str::from_utf8(&item.value) {
        Ok(text) => object["value"] = json!(text),
        Err(_) => {
            let digits = item.value.iter().fold(String::new(), |mut digits, byte| {
                let _ = write!(digits, "{byte:02x}");
                digits
            });
            object["value_hex"] = json!(digits);
        }
    }
    object
}
