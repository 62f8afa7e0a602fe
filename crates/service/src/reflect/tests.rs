//! Descriptions of types of every form, for people and for JSON; and JSON that fits a type or does
//! not.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};
use zerocopy::little_endian::U64;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned, big_endian};

use super::*;
use crate::{Fixed, Growing, Postcard, Prost, service};

#[derive(Serialize, Deserialize, PartialEq, Debug)]
struct Everything {
    small: u8,
    wide: i128,
    ratio: f32,
    is_open: bool,
    letter: char,
    name: String,
    nothing: (),
    #[serde(default)]
    maybe: Option<Inner>,
    list: Vec<Inner>,
    array: [u16; 3],
    long: (u8, NonZeroU32, Inner, IpAddr, String),
    map: BTreeMap<String, Vec<u8>>,
    renamed: Wrapped,
    shapes: Vec<Form>,
}

#[derive(Serialize, Deserialize, PartialEq, Debug)]
struct Inner {
    key: u64,
}

#[derive(Serialize, Deserialize, PartialEq, Debug)]
struct Wrapped(u32);

#[derive(Serialize, Deserialize, PartialEq, Debug)]
enum Form {
    Empty,
    One(u64),
    Two(u8, String),
    Fields {
        inner: Inner,
        deeper: Option<Box<Form>>,
    },
}

#[derive(Serialize, Deserialize)]
struct Page<T> {
    items: Vec<T>,
}

#[derive(Serialize, Deserialize)]
struct Pages {
    numbers: Page<u64>,
    names: Page<String>,
}

#[derive(Serialize, Deserialize)]
struct Tree {
    branches: Vec<Tree>,
}

/// A type without a name of its own in serde's eyes, which contains itself.
#[derive(Serialize, Deserialize)]
struct Nest(Vec<Nest>);

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Loose {
    Number(u64),
    Text(String),
}

/// A type, and the fields or variants of each type that it needs.
fn described<T: serde::de::DeserializeOwned>() -> (String, Vec<String>) {
    let mut types = Types::default();
    let kind = kind_of::<T>(&mut types).to_string();
    let fields = |all: &[Field]| {
        let all = all
            .iter()
            .map(|field| format!("{}: {}", field.name, field.kind));
        all.collect::<Vec<_>>().join(", ")
    };
    let variant = |it: &Variant| match &it.parts {
        Parts::Unit => it.name.to_owned(),
        Parts::Value(kind) => format!("{} {kind}", it.name),
        Parts::Fields(all) => format!("{} {{{}}}", it.name, fields(all)),
    };
    let defined = types.iter().map(|(name, content)| match content {
        Content::Fields(all) => format!("{name}: {}", fields(all)),
        Content::Variants(all) => {
            let all: Vec<_> = all.iter().map(variant).collect();
            format!("{name}: {}", all.join(" | "))
        }
    });
    (kind, defined.collect())
}

#[test]
fn a_type_of_serdes_shows_its_fields() {
    let (kind, types) = described::<Everything>();
    assert_eq!(kind, "Everything");
    assert_eq!(
        types,
        [
            "Inner: key: u64",
            "Form: Empty | One u64 | Two (u8, string) | \
             Fields {inner: Inner, deeper: Option<Form>}",
            "Everything: small: u8, wide: i128, ratio: f32, is_open: bool, letter: char, \
             name: string, nothing: (), maybe: Option<Inner>, list: [Inner], array: [u16; 3], \
             long: (u8, u32, Inner, string, any), map: {string: [u8]}, renamed: u32, \
             shapes: [Form]",
        ]
    );
}

#[test]
fn types_that_contain_themselves_or_share_a_name_are_distinguished() {
    assert_eq!(described::<Tree>().1, ["Tree: branches: [Tree]"]);
    assert_eq!(
        described::<Pages>().1,
        [
            "Page: items: [u64]",
            "Page#2: items: [string]",
            "Pages: numbers: Page, names: Page#2",
        ]
    );
    assert_eq!(described::<Nest>().0, "[any]");
    assert!(from_json::<Nest>("[[], [[]]]").is_ok());
    assert_eq!(described::<Loose>().0, "any");
    assert_eq!(described::<[u8; 32]>().0, "[u8; 32]");
    assert_eq!(described::<()>().0, "()");
    assert_eq!(described::<HashMap<u8, (bool,)>>().0, "{u8: (bool)}");
}

const FITS: &str = r#"{"small": 255, "wide": -170141183460469231731687303715884105728, "ratio": 1,
    "is_open": true, "letter": "ä", "name": "", "nothing": null, "list": [{"key": 1}],
    "array": [1, 2, 3], "long": [1, 7, {"key": 2}, "::1", "x"], "map": {"a": [1]}, "renamed": 4,
    "shapes": ["Empty", {"One": 1}, {"Two": [1, "x"]},
        {"Fields": {"inner": {"key": 3}, "deeper": "Empty"}}]}"#;

#[test]
fn json_that_fits_comes_back() {
    let value: Everything = from_json(FITS).unwrap();
    assert_eq!((value.small, value.wide), (255, i128::MIN));
    let again = InJson::<Postcard>::to_json(&value).unwrap();
    assert_eq!(<Everything as InJson<Prost>>::from_json(&again), Ok(value));
}

#[test]
fn json_that_does_not_fit_names_the_field_and_its_type() {
    let with = |from: &str, to: &str| {
        assert!(FITS.contains(from), "{from}");
        let misfit = from_json::<Everything>(&FITS.replacen(from, to, 1));
        misfit.unwrap_err().to_string()
    };
    for (from, to, said) in [
        ("255", "256", "field `small`: expected u8, found 256"),
        ("\"\"", "7", "field `name`: expected string, found 7"),
        (
            "\"ä\"",
            "\"ab\"",
            "field `letter`: expected char, found a string",
        ),
        (
            "[{\"key\": 1}]",
            "[{\"key\": 1}, {\"key\": \"x\"}]",
            "field `list[1].key`: expected u64, found a string",
        ),
        (
            "[1, 2, 3]",
            "[1, 2]",
            "field `array`: expected [u16; 3], found an array of 2",
        ),
        (
            "{\"key\": 3}",
            "{}",
            "field `shapes[3].Fields.inner.key` is missing; expected u64",
        ),
        (
            "\"small\": 255,",
            "",
            "field `small` is missing; expected u8",
        ),
        (
            "\"Empty\"",
            "\"Empt\"",
            "field `shapes[0]`: expected Form, one of Empty, One, Two, Fields, found a string",
        ),
        (
            "{\"key\": 2}",
            "{\"key\": 2, \"kye\": 2}",
            "field `long[2].kye` is unknown; Inner has the fields key: u64",
        ),
        (
            "\"list\"",
            "\"lists\"",
            "field `lists` is unknown; Everything has the fields small: u8",
        ),
    ] {
        let misfit = with(from, to);
        assert!(misfit.starts_with(said), "{misfit}");
    }
}

#[test]
fn other_json_is_refused_with_a_reason() {
    // Serde's own words, where the type does not show the reason.
    let misfit = from_json::<Everything>(&FITS.replacen("[1, 7,", "[1, 0,", 1));
    let misfit = misfit.unwrap_err().to_string();
    assert!(misfit.contains("nonzero u32"), "{misfit}");
    for (json, said) in [
        ("", "the argument is empty; write `null` for ()"),
        (
            "{",
            "no JSON: EOF while parsing an object at line 1 column 1",
        ),
        (
            "[1]",
            "expected Inner, an object with the fields key, found an array of 1",
        ),
    ] {
        let misfit = <Inner as InJson<Postcard>>::from_json(json);
        match json {
            // Serde accepts an array for a structure.
            "[1]" => assert_eq!(misfit, Ok(Inner { key: 1 })),
            _ => assert_eq!(misfit.unwrap_err().to_string(), said),
        }
    }
    let misfit = from_json::<Inner>("7").unwrap_err().to_string();
    assert_eq!(
        misfit,
        "expected Inner, an object with the fields key, found 7"
    );
}

#[derive(
    Shape, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, Clone, Copy, PartialEq, Debug,
)]
#[shape(crate = crate)]
#[repr(C)]
struct Pair {
    key: U64,
    r#type: big_endian::I16,
    bytes: [u8; 2],
    nested: Wide,
}

#[derive(
    Shape, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, Clone, Copy, PartialEq, Debug,
)]
#[shape(crate = crate)]
#[repr(C, packed)]
struct Wide(u128, f64);

fn pair() -> Pair {
    Pair {
        key: U64::new(u64::MAX),
        r#type: (-3).into(),
        bytes: [1, 2],
        nested: Wide(u128::MAX, 0.5),
    }
}

const PAIR: &str = concat!(
    r#"{"key":18446744073709551615,"type":-3,"bytes":[1,2],"#,
    r#""nested":["340282366920938463463374607431768211455",0.5]}"#
);

#[test]
fn a_fixed_layout_is_an_object_of_its_fields() {
    assert_eq!(InJson::<Fixed>::to_json(&pair()).unwrap(), PAIR);
    assert_eq!(<Pair as InJson<Fixed>>::from_json(PAIR), Ok(pair()));
    assert_eq!(<Pair as InJson<Growing<8>>>::from_json(PAIR), Ok(pair()));
    let mut types = Types::default();
    assert_eq!(<Pair as Shape>::kind(&mut types).to_string(), "Pair");
    let fields = "{\"bytes\": [1, 2], \"key\": 1, \"type\": 1, \"nested\": [1, 1]}";
    for (from, to, said) in [
        ("\"key\": 1, ", "", "field `key` is missing; expected u64"),
        (
            "1, 2]",
            "1, 256]",
            "field `bytes[1]`: expected u8, found 256",
        ),
        (
            "\"type\": 1",
            "\"type\": 32768",
            "field `type`: expected i16, found 32768",
        ),
        (
            "[1, 1]",
            "[1]",
            "field `nested`: expected (u128, f64), found an array of 1",
        ),
        (
            "\"key\"",
            "\"kye\"",
            "field `kye` is unknown; Pair has the fields key: u64",
        ),
    ] {
        assert!(fields.contains(from), "{from}");
        let misfit = <Pair as InJson<Fixed>>::from_json(&fields.replacen(from, to, 1));
        let misfit = misfit.unwrap_err().to_string();
        assert!(misfit.starts_with(said), "{misfit}");
    }
    let few = <Pair as InJson<Fixed>>::from_json(&fields.replacen("[1, 1]", "[\"x\", 1]", 1));
    assert_eq!(few.unwrap_err().to_string(), "expected Pair");
}

#[service(codec = Fixed, reflect, base = 500, crate = crate)]
trait Mixed {
    #[method(1, idempotent)]
    fn get(pair: Pair) -> Result<U64, Pair>;
    #[method(2, codec = Growing<8>)]
    fn grow(nothing: ()) -> [u8; 8];
    #[notify(3, codec = Postcard)]
    fn touch(form: Form);
}

#[test]
fn a_service_is_described_with_its_methods_and_types() {
    let services = BTreeMap::from([("Mixed", Some(MixedReflection::SERVICE)), ("Other", None)]);
    let described: Value = serde_json::from_str(&description(&services)).unwrap();
    assert_eq!(
        described["services"][1],
        serde_json::json!({"name": "Other"})
    );
    let mixed = &described["services"][0];
    let row = |method: &Value| {
        let text = |key: &str| method[key].to_string().replace('"', "");
        let keys = [
            "name",
            "number",
            "codec",
            "idempotent",
            "one_way",
            "request",
            "response",
        ];
        let all = keys.iter().chain(&["error"]).map(|key| text(key));
        all.collect::<Vec<_>>().join(" ")
    };
    let methods: Vec<_> = mixed["methods"]
        .as_array()
        .unwrap()
        .iter()
        .map(row)
        .collect();
    assert_eq!(
        methods,
        [
            "Mixed.get 501 Fixed true false Pair u64 Pair",
            "Mixed.grow 502 Growing<8> false false () [u8; 8] null",
            "Mixed.touch 503 Postcard false true Form null null",
        ]
    );
    let types = mixed["types"].as_array().unwrap();
    let names: Vec<_> = types
        .iter()
        .map(|it| it["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["Pair", "Inner", "Form"]);
    assert_eq!(
        types[0]["fields"][1],
        serde_json::json!({"name": "type", "type": "i16"})
    );
    assert_eq!(
        types[2]["variants"][0],
        serde_json::json!({"name": "Empty"})
    );
}

#[test]
fn arguments_become_messages_and_responses_json() {
    let [get, grow, touch] = MixedReflection::METHODS else {
        panic!("not exactly three methods");
    };
    assert_eq!(get.message(PAIR).unwrap(), pair().as_bytes());
    assert_eq!(touch.message("\"Empty\"").unwrap(), [0]);
    assert_eq!(grow.message("null"), Ok(Vec::new()));
    let (ok, err) = (
        [&[7, 0, 0, 0, 0, 0, 0, 0][..], &[0]].concat(),
        [pair().as_bytes(), &[1]].concat(),
    );
    assert_eq!(get.returned(&ok), Ok(Returned::Value("7".to_owned())));
    assert_eq!(get.returned(&err), Ok(Returned::Error(PAIR.to_owned())));
    let short = grow.returned(&[1; 7]);
    assert!(
        matches!(short, Err(BadResponse::Undecodable(_))),
        "{short:?}"
    );
    for wrong in [&[][..], &[2], &[1, 2, 0]] {
        let wrong = get.returned(wrong);
        assert!(
            matches!(wrong, Err(BadResponse::Undecodable(_))),
            "{wrong:?}"
        );
    }
}

#[test]
fn a_value_without_a_form_in_json_is_an_error() {
    let keys = Conversion::of::<Postcard, HashMap<(u8, u8), u8>>();
    assert_eq!((keys.to_json)(&[1, 1, 2, 3]), Err(BadResponse::NoJson));
}
