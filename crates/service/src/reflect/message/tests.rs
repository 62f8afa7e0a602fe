//! JSON that does not fit although it has the fields of the type, and numbers that JSON does not
//! have.

use std::num::NonZeroU8;

use serde::{Deserialize, Serialize};

use super::InJson;
use crate::reflect::{Shape, Types, from_json};
use crate::{Fixed, Postcard};

#[derive(Serialize, Deserialize, PartialEq, Debug)]
struct Limits {
    #[serde(default)]
    first: u32,
    #[serde(alias = "most")]
    last: u32,
    ratio: f32,
    threads: Option<NonZeroU8>,
}

fn misfit(json: &str) -> String {
    from_json::<Limits>(json).unwrap_err().to_string()
}

#[test]
fn only_a_field_that_serde_needs_is_missing() {
    let fits = from_json(r#"{"most": 2, "ratio": 1}"#);
    let limits = Limits {
        first: 0,
        last: 2,
        ratio: 1.0,
        threads: None,
    };
    assert_eq!(fits, Ok(limits));
    let last = "field `last` is missing; expected u32";
    assert_eq!(misfit(r#"{"ratio": 1}"#), last);
    let zero = misfit(r#"{"last": 1, "ratio": 1, "threads": 0}"#);
    assert!(zero.starts_with("invalid value: integer `0`"), "{zero}");
}

#[test]
fn a_number_that_is_no_f32_does_not_become_infinite() {
    let large = "field `ratio`: expected f32, found 1e+39";
    assert_eq!(misfit(r#"{"last": 1, "ratio": 1e39}"#), large);
    let large = <f32 as InJson<Fixed>>::from_json("-1e39").unwrap_err();
    assert_eq!(large.to_string(), "expected f32, found -1e+39");
    assert!(<f64 as InJson<Fixed>>::from_json("1e39").is_ok());
    // The bytes of other codecs may be any `f32`.
    let infinite = postcard::to_stdvec(&f32::INFINITY).unwrap();
    let infinite = <Postcard as crate::Codec<f32>>::decode(&infinite);
    assert_eq!(infinite, Ok(f32::INFINITY));
}

#[test]
fn numbers_that_json_does_not_have_are_strings_in_a_fixed_layout() {
    for (number, text) in [
        (f32::NAN, r#""NaN""#),
        (f32::INFINITY, r#""inf""#),
        (f32::NEG_INFINITY, r#""-inf""#),
    ] {
        assert_eq!(InJson::<Fixed>::to_json(&number).as_deref(), Some(text));
        let again = <f32 as InJson<Fixed>>::from_json(text).unwrap();
        assert_eq!(again.to_bits(), number.to_bits());
        let wide = <f64 as InJson<Fixed>>::from_json(text).unwrap();
        assert_eq!(wide.to_string(), number.to_string());
    }
    assert!(<f32 as InJson<Fixed>>::from_json(r#""1.5""#).is_err());
}

/// A value with numbers at every kind of place.
#[derive(Serialize, Deserialize, Debug)]
struct Numbers {
    one: f32,
    pair: (f64, f64),
    many: Vec<Option<f64>>,
    none: Option<f32>,
    either: Either,
    by_name: std::collections::BTreeMap<u8, Wrapped>,
}

#[derive(Serialize, Deserialize, Debug)]
enum Either {
    Left(f32),
    Right { a: f64 },
    Both(f32, f64),
    Neither,
}

#[derive(Serialize, Deserialize, Debug)]
struct Wrapped(f64);

#[test]
fn numbers_that_json_does_not_have_are_strings_in_types_of_serde() {
    let json = concat!(
        r#"{"one":"NaN","pair":["inf",1.5],"many":["-inf",null,2.0],"none":null,"#,
        r#""either":EITHER,"by_name":{"7":"NaN"}}"#
    );
    let eithers = [
        r#"{"Left":"inf"}"#,
        r#"{"Right":{"a":"-inf"}}"#,
        r#"{"Both":[0.5,"NaN"]}"#,
        r#""Neither""#,
    ];
    for either in eithers {
        let json = json.replace("EITHER", either);
        let numbers: Numbers = from_json(&json).unwrap_or_else(|misfit| panic!("{misfit}"));
        assert!(numbers.one.is_nan() && numbers.by_name[&7].0.is_nan());
        assert_eq!(numbers.pair, (f64::INFINITY, 1.5));
        let bytes = postcard::to_stdvec(&numbers).unwrap();
        let read = <Postcard as crate::Codec<Numbers>>::decode(&bytes).unwrap();
        assert_eq!(InJson::<Postcard>::to_json(&read), Some(json));
    }
    let many = json.replace("EITHER", r#""Neither""#);
    let wrong = many.replace(r#""pair":["inf""#, r#""pair":["one""#);
    let misfit = from_json::<Numbers>(&wrong).unwrap_err().to_string();
    assert_eq!(misfit, "field `pair[0]`: expected f64, found a string");
}

/// A number that can be the key of a map.
#[derive(Serialize, Deserialize, Debug)]
struct Ordered(f64);

impl Ord for Ordered {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl PartialOrd for Ordered {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Ordered {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Ordered {}

#[test]
fn numbers_may_be_keys_of_maps() {
    let json = r#"{"-inf":0,"-1.5":1,"20.0":2,"NaN":3}"#;
    let map: std::collections::BTreeMap<Ordered, u8> =
        from_json(json).unwrap_or_else(|misfit| panic!("{misfit}"));
    assert_eq!(InJson::<Postcard>::to_json(&map).as_deref(), Some(json));
    assert!(from_json::<f64>(r#""1e400""#).is_err());
    assert!(from_json::<f32>(r#""1e40""#).is_err());
}

#[derive(Shape, PartialEq, Debug)]
#[shape(crate = crate)]
struct Pair {
    left: u8,
    right: [u8; 2],
}

#[derive(Shape, PartialEq, Debug)]
#[shape(crate = crate)]
struct Nothing;

#[test]
fn a_structure_without_fields_is_null_as_its_description_shows() {
    let kind = <Nothing as Shape>::kind(&mut Types::default());
    assert_eq!(kind.to_string(), "()");
    assert_eq!(<Nothing as InJson<Fixed>>::from_json("null"), Ok(Nothing));
    let null = InJson::<Fixed>::to_json(&Nothing);
    assert_eq!(null.as_deref(), Some("null"));
}

#[test]
fn an_object_with_a_key_twice_is_refused() {
    let twice = "the key `left` occurs twice at line 1 column 39";
    let json = r#"{"left": 1, "right": [1, 2], "left": 2}"#;
    let misfit = <Pair as InJson<Fixed>>::from_json(json).unwrap_err();
    assert_eq!(misfit.to_string(), twice);
    assert!(from_json::<Limits>(r#"{"last": 1, "last": 1, "ratio": 1}"#).is_err());
}

#[test]
fn long_text_that_does_not_fit_is_not_compared() {
    let pairs = "{\"a\":0},".repeat(200_000);
    let pairs = format!("[{}0]", pairs);
    let fixed = <[u8; 2] as InJson<Fixed>>::from_json(&pairs).unwrap_err();
    let long = "the argument has more than 1048576 bytes";
    assert_eq!(fixed.to_string(), long);
    let serde = from_json::<Vec<Limits>>(&pairs).unwrap_err().to_string();
    assert_eq!(serde, "missing field `last` at line 1 column 8");
    // Text of a value that is large itself.
    let large = format!("[{}100]", "100, ".repeat((1 << 18) - 1));
    assert!(large.len() > 1 << 20);
    assert!(<[u8; 1 << 18] as InJson<Fixed>>::from_json(&large).is_ok());
}
