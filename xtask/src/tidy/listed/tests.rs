//! A table without a file is found; a crate without a table is not asked for one.

use super::{Tree, check};

fn found(head: &str, modules: &str) -> usize {
    let text = format!("{head}\n{modules}\n");
    check(&Tree::of(&[("crates/a/src/lib.rs", &text)])).len()
}

#[test]
fn a_table_names_every_file() {
    let head = "//! | file | what it owns |\n//! |---|---|\n//! | `a.rs`, `b/` | letters |\n";
    assert_eq!(found(head, "mod a;\npub mod b;\nmod error;"), 0);
    assert_eq!(found(head, "mod a;\npub(crate) mod c;"), 1);
    assert_eq!(found(head, "mod a_b;\nmod d { mod e; }"), 1);
    assert_eq!(found("//! A crate.\n", "mod c;"), 0);
}
