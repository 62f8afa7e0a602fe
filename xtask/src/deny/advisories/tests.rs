//! A page concerns the versions that it does not call safe.

use super::*;

const PAGE: &str = r#"```toml
[advisory]
id = "RUSTSEC-2020-0001"
package = "a"
date = "2020-01-01"

[affected]
functions = { "a::b" = ["< 1.2.0"] }

[versions]
patched = [
    ">= 1.2.3, < 2.0.0",
    "^2.1",
]
unaffected = ["< 1.0.0"]
```

# A title
id = "none"
"#;

#[test]
fn versions_that_are_neither_patched_nor_unaffected_are_concerned() {
    let advisory = Advisory::parse(PAGE).unwrap();
    assert_eq!(advisory.id, "RUSTSEC-2020-0001");
    for safe in ["0.9.9", "1.2.3", "1.9.0", "2.1.0"] {
        assert!(!advisory.concerns(safe).unwrap(), "{safe}");
    }
    for concerned in ["1.0.0", "1.2.2", "2.0.0", "3.0.0"] {
        assert!(advisory.concerns(concerned).unwrap(), "{concerned}");
    }
}

#[test]
fn pages_that_were_taken_back_and_notices_concern_no_version() {
    for line in ["withdrawn = \"2021-01-01\"", "informational = \"notice\""] {
        let page = PAGE.replace("package = \"a\"", line);
        assert!(
            !Advisory::parse(&page).unwrap().concerns("1.0.0").unwrap(),
            "{line}"
        );
    }
    let page = PAGE.replace("package = \"a\"", "informational = \"unmaintained\"");
    assert!(Advisory::parse(&page).unwrap().concerns("1.0.0").unwrap());
}

#[test]
fn the_database_is_searched_by_package() {
    let database = std::env::temp_dir().join(format!("xtask-advisories-{}", std::process::id()));
    fs::create_dir_all(database.join("crates/a")).unwrap();
    fs::write(database.join("crates/a/RUSTSEC-2020-0001.md"), PAGE).unwrap();
    let package = |name: &str, version: &str, source: Option<&str>| Package {
        name: name.to_owned(),
        version: version.to_owned(),
        source: source.map(str::to_owned),
        licence: None,
        wildcards: Vec::new(),
        uses: std::collections::BTreeSet::new(),
    };
    let packages = [
        package("a", "1.0.0", Some("registry")),
        package("a", "1.2.3", Some("registry")),
        package("b", "1.0.0", Some("registry")),
        // A crate of this repository may have the name of a library.
        package("a", "1.0.1", None),
    ];
    let found = faults(&database, &packages).unwrap();
    fs::remove_dir_all(&database).unwrap();
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with("a 1.0.0: ") && found[0].ends_with("RUSTSEC-2020-0001"));
}
