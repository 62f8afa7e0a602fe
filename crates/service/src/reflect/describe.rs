//! The description of services as JSON, which a server gives and `dunlin list` prints:
//!
//! ```json
//! {"services": [{"name": "Kv",
//!   "methods": [{"name": "Kv.get", "number": 1, "codec": "Fixed", "idempotent": true,
//!     "one_way": false, "request": "u64", "response": "Value", "error": "Missing"}],
//!   "types": [{"name": "Value", "fields": [{"name": "version", "type": "u64"}]},
//!     {"name": "Missing", "variants": [{"name": "Old", "fields": []}, {"name": "New"}]}]}]}
//! ```
//!
//! For a service without reflection, only its name is given. `error` is `null` if the method cannot
//! fail, and `response` too if it has no answer. A variant has `type` for a value, `fields`, or
//! neither.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::kind::{Content, Field, Parts, Types, Variant};
use super::{Conversion, MethodReflection, ServiceReflection};

/// The JSON that describes services, by their names. `None` is a service without reflection.
pub fn description(services: &BTreeMap<&str, Option<&ServiceReflection>>) -> String {
    let services = services.iter().map(|(name, service)| match service {
        Some(service) => described(service),
        None => json!({ "name": name }),
    });
    json!({ "services": services.collect::<Vec<_>>() }).to_string()
}

fn described(service: &ServiceReflection) -> Value {
    let mut types = Types::default();
    let methods = service.methods().iter();
    let methods: Vec<_> = methods.map(|it| method(it, &mut types)).collect();
    let types: Vec<_> = types
        .iter()
        .map(|(name, it)| definition(name, it))
        .collect();
    json!({ "name": service.name(), "methods": methods, "types": types })
}

fn method(method: &MethodReflection, types: &mut Types) -> Value {
    let mut kind = |it: &Conversion| (it.kind)(types).to_string();
    json!({
        "name": method.name(),
        "number": method.number(),
        "codec": method.codec(),
        "idempotent": method.idempotent,
        "one_way": method.is_one_way(),
        "request": kind(&method.request),
        "response": (!method.is_one_way()).then(|| kind(&method.value)),
        "error": method.error.as_ref().map(kind),
    })
}

fn definition(name: &str, content: &Content) -> Value {
    match content {
        Content::Fields(all) => json!({ "name": name, "fields": fields(all) }),
        Content::Variants(all) => {
            let variants: Vec<_> = all.iter().map(variant).collect();
            json!({ "name": name, "variants": variants })
        }
    }
}

fn variant(Variant { name, parts }: &Variant) -> Value {
    match parts {
        Parts::Unit => json!({ "name": name }),
        Parts::Value(kind) => json!({ "name": name, "type": kind.to_string() }),
        Parts::Fields(all) => json!({ "name": name, "fields": fields(all) }),
    }
}

fn fields(all: &[Field]) -> Vec<Value> {
    let field = |Field { name, kind }: &Field| json!({ "name": name, "type": kind.to_string() });
    all.iter().map(field).collect()
}
