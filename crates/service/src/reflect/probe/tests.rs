//! Types that contain themselves, share a name, are the same one by many paths, or panic.

use serde::{Deserialize, Deserializer, Serialize};

use crate::reflect::kind::{Content, Kind, Parts, Types};
use crate::reflect::{from_json, kind_of};

#[derive(Serialize, Deserialize)]
struct Forest(Vec<Forest>);

#[derive(Serialize, Deserialize)]
struct Node(u64, Vec<Node>);

#[derive(Serialize, Deserialize)]
#[serde(transparent)]
struct Bare(Vec<(Bare, Bare)>);

#[test]
fn types_without_field_names_may_contain_themselves() {
    for (kind, shown) in [
        (kind_of::<Forest> as fn(&mut Types) -> Kind, "[any]"),
        (kind_of::<Node>, "(u64, [any])"),
        (kind_of::<Bare>, "[[any; 2]]"),
    ] {
        assert_eq!(kind(&mut Types::default()).to_string(), shown);
    }
}

#[derive(Serialize, Deserialize, PartialEq, Debug)]
struct Wrap<T> {
    inner: T,
}

#[derive(Serialize, Deserialize, PartialEq, Debug)]
struct Last {
    last: u64,
}

#[derive(Serialize, Deserialize, PartialEq, Debug)]
struct Tree {
    leaf: Option<u8>,
    branches: Vec<Tree>,
}

mod other {
    use super::{Deserialize, Serialize};

    #[derive(Serialize, Deserialize, PartialEq, Debug)]
    pub(super) struct Tree {
        pub(super) left: Option<Box<Tree>>,
        pub(super) of: super::Tree,
    }
}

/// The definitions, each as its name and its fields.
fn defined<T: serde::de::DeserializeOwned>() -> Vec<String> {
    let mut types = Types::default();
    kind_of::<T>(&mut types);
    let shown = |(name, content): (&str, &Content)| match content {
        Content::Fields(all) => {
            let all = all.iter().map(|it| format!("{}: {}", it.name, it.kind));
            format!("{name} {{ {} }}", all.collect::<Vec<_>>().join(", "))
        }
        Content::Variants(_) => name.to_owned(),
    };
    types.iter().map(shown).collect()
}

#[test]
fn types_with_the_same_name_are_distinguished() {
    assert_eq!(
        defined::<Wrap<Wrap<u8>>>(),
        ["Wrap#2 { inner: u8 }", "Wrap { inner: Wrap#2 }"]
    );
    assert_eq!(
        defined::<other::Tree>(),
        [
            "Tree#2 { leaf: Option<u8>, branches: [Tree#2] }",
            "Tree { left: Option<Tree>, of: Tree#2 }",
        ]
    );
}

#[test]
fn json_of_types_with_the_same_name_is_accepted() {
    let nested = from_json::<Wrap<Wrap<Last>>>(r#"{"inner": {"inner": {"last": 1}}}"#);
    let inner = Wrap {
        inner: Last { last: 1 },
    };
    assert_eq!(nested, Ok(Wrap { inner }));
    let tree = r#"{"left": null, "of": {"leaf": 1, "branches": []}}"#;
    assert!(from_json::<other::Tree>(tree).is_ok());
}

/// Structures that each have the next one twice.
macro_rules! doubled {
    ($name:ident $next:ident $($rest:ident)*) => {
        #[derive(Serialize, Deserialize)]
        struct $name {
            left: Option<Box<$next>>,
            right: Option<Box<$next>>,
        }
        doubled! { $next $($rest)* }
    };
    ($name:ident) => {
        #[derive(Serialize, Deserialize)]
        struct $name {
            last: u64,
        }
    };
}

doubled! { A B C D E F G H I J K L M N O P }

#[test]
fn a_type_on_many_paths_is_explored_once() {
    let defined = defined::<A>();
    assert_eq!(defined.len(), 16);
    assert_eq!(defined[0], "P { last: u64 }");
    assert_eq!(defined[15], "A { left: Option<B>, right: Option<B> }");
}

struct Even;

impl<'de> Deserialize<'de> for Even {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let number = u64::deserialize(from)?;
        assert!(number.is_multiple_of(2), "{number} is odd");
        Ok(Self)
    }
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "the fields are only looked at")]
enum Odd {
    /// The element before the last is made, which panics.
    Pair(Even, String),
    Alone(Even),
}

#[test]
fn a_panic_in_a_type_hides_only_that_part() {
    let mut types = Types::default();
    kind_of::<Vec<Odd>>(&mut types);
    let Some(Content::Variants(variants)) = types.get("Odd") else {
        panic!("{types:?}");
    };
    let shown = variants.iter().map(|it| match &it.parts {
        Parts::Value(kind) => kind.to_string(),
        parts => panic!("{parts:?}"),
    });
    assert_eq!(shown.collect::<Vec<_>>(), ["(u64, any)", "u64"]);
}
