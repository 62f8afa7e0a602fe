//! A `Core` within its limits passes; one with too many methods, files or places is found.

use super::*;

fn core(methods: usize) -> String {
    let methods: String = (0..methods)
        .map(|number| format!("fn f{number}(&self) {{}}\n"))
        .collect();
    format!("impl Core {{\n{methods}}}\n")
}

fn findings(files: &[(&str, &str)]) -> Vec<String> {
    let found = check(&Tree::of(files));
    found.iter().map(ToString::to_string).collect()
}

#[test]
fn a_core_within_its_limits_passes() {
    let ten = core(10);
    let found = findings(&[
        ("crates/core/src/protocol.rs", &ten),
        ("crates/core/src/protocol/client.rs", &ten),
        ("crates/core/src/protocol/server.rs", &ten),
        ("crates/core/src/protocol/sessions.rs", &ten),
        (
            "crates/core/src/protocol/laws.rs",
            "impl Laws { fn f() {} }",
        ),
        ("crates/core/src/protocol/tests.rs", &ten),
        ("crates/sim/src/core.rs", &ten),
    ]);
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn a_method_too_many_is_found() {
    let (some, rest) = (core(12), core(METHODS - 11));
    let found = findings(&[
        ("crates/core/src/protocol.rs", &some),
        ("crates/core/src/protocol/client.rs", &rest),
    ]);
    let text = "crates/core/src/protocol: `Core` has 41 methods, and 0 functions take `&mut Core`; \
                together at most 40 may exist: move logic down";
    assert_eq!(found, [text]);
}

#[test]
fn functions_that_borrow_a_core_to_change_it_count_wherever_they_are() {
    let full = core(METHODS);
    let found = |function: &str| {
        let files = [
            ("crates/core/src/protocol.rs", &full[..]),
            ("crates/core/src/endpoint/dispatch.rs", function),
        ];
        findings(&files).len()
    };
    for function in [
        "fn answer(core: &mut Core, entry: &mut Entry) {}",
        "fn answer<'a>(entry: u8, core: &'a mut Core) {}",
        "fn answer(core: &mut crate::protocol::Core) {}",
        "impl Other { fn answer((core, at): (&mut Core, u8)) {} }",
    ] {
        assert_eq!(found(function), 1, "{function}");
    }
    for function in [
        "fn see(core: &Core) {}",
        "fn answer(server: &mut Server<'_>) -> &mut Core {}",
        "impl Cx<'_> { fn call(&mut self) {} }",
        "struct Cx<'a> { core: &'a mut Core }",
        "fn answer(cores: &mut Cores) {}",
    ] {
        assert_eq!(found(function), 0, "{function}");
    }
}

#[test]
fn methods_and_borrowers_of_a_view_count() {
    let methods = |count: usize| {
        let all: String = (0..count)
            .map(|number| format!("fn f{number}(&self) {{}}\n"))
            .collect();
        format!("impl Server<'_> {{\n{all}}}\nimpl Drop for Server<'_> {{ fn drop() {{}} }}")
    };
    let (most, borrower) = (VIEWS[0].1, "fn f(server: &mut Server<'_>) {}");
    let found = |methods: &str, borrower: &str| {
        let sources = [("server/events.rs", methods), ("handler.rs", borrower)];
        let paths = sources.map(|(path, text)| (format!("{CRATE}{path}"), text));
        findings(&paths.each_ref().map(|(path, text)| (&path[..], *text)))
    };
    assert_eq!(found(&methods(most), "").len(), 0);
    assert_eq!(found(&methods(most), borrower).len(), 1);
    assert_eq!(
        found(&methods(most + 1), "fn f(server: Server<'_>) {}").len(),
        1
    );
}

#[test]
fn all_impls_of_a_file_count() {
    let two = core(METHODS) + &core(1);
    assert_eq!(findings(&[("crates/core/src/protocol.rs", &two)]).len(), 1);
}

#[test]
fn a_file_too_many_is_found() {
    let paths = ["a", "b", "c", "d", "e"].map(|name| format!("crates/core/src/protocol/{name}.rs"));
    let one = core(1);
    let files = paths.each_ref().map(|path| (&path[..], &one[..]));
    let text = "crates/core/src/protocol: 5 files have methods of `Core`; at most 4 may";
    assert_eq!(findings(&files), [text]);
}

#[test]
fn a_core_in_another_folder_is_found() {
    let found = findings(&[("crates/core/src/endpoint/plain.rs", &core(0))]);
    let text = "crates/core/src/endpoint/plain.rs: has methods of `Core`; they belong in \
                crates/core/src/protocol";
    assert_eq!(found, [text]);
}
