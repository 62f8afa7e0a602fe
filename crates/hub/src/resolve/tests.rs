//! Sources, driven by the begins and ends of look-ups.

use std::io;

use super::*;

type Found = io::Result<Vec<SocketAddr>>;

fn resolver(found: io::Result<&'static str>) -> Resolver {
    let found = found.map_err(|error| error.kind());
    Resolver::new(move || -> Found { Ok(vec![found?.parse().unwrap()]) })
}

fn known(sources: &Sources) -> Vec<&str> {
    sources.known().collect()
}

#[test]
fn fixed_addresses_are_known_before_any_look_up_has_ended() {
    let moving = vec![resolver(Ok("127.0.0.1:2"))];
    let mut sources = Sources::new(vec!["127.0.0.1:1".into()], moving);
    assert_eq!(known(&sources), ["127.0.0.1:1"]);
    let [look_up] = &sources.begin()[..] else {
        panic!("not exactly one look-up");
    };
    assert!(sources.on_end(0, look_up.resolver.run()));
    assert_eq!(known(&sources), ["127.0.0.1:1", "127.0.0.1:2"]);
}

#[test]
fn a_look_up_that_hangs_holds_up_no_other_source() {
    let moving = [Ok("127.0.0.1:1"), Ok("127.0.0.1:2")].map(resolver);
    let mut sources = Sources::new(Vec::new(), moving.into());
    let first = sources.begin();
    assert_eq!(first.len(), 2);
    assert!(sources.on_end(1, first[1].resolver.run()));
    assert_eq!(known(&sources), ["127.0.0.1:2"]);
    let again = sources.begin();
    assert_eq!(again.len(), 1, "the first one still runs");
    assert_eq!(again[0].source, 1);
}

#[test]
fn a_failure_keeps_the_addresses_that_were_found() {
    let mut sources = Sources::new(Vec::new(), vec![resolver(Ok("127.0.0.1:1"))]);
    let look_up = sources.begin().pop().unwrap();
    assert!(sources.on_end(0, look_up.resolver.run()));
    assert!(!sources.on_end(0, None));
    assert_eq!(known(&sources), ["127.0.0.1:1"]);
    assert!(sources.on_end(0, Some(vec!["127.0.0.1:9".into()])));
    assert_eq!(known(&sources), ["127.0.0.1:9"]);
}

#[test]
fn a_look_up_with_an_error_an_empty_list_or_a_panic_finds_nothing() {
    let none = || -> Found { Ok(Vec::new()) };
    let panics = || -> Found { panic!("a planted panic") };
    let failed = resolver(Err(io::ErrorKind::TimedOut.into()));
    let name = Resolver::of_name("nowhere.invalid:1");
    for resolver in [failed, Resolver::new(none), Resolver::new(panics), name] {
        let look_up = Sources::new(Vec::new(), vec![resolver]).begin().pop();
        assert_eq!(look_up.unwrap().resolver.run(), None);
    }
    let name = Resolver::of_name("localhost:7");
    let found = Sources::new(Vec::new(), vec![name]).begin()[0]
        .resolver
        .run();
    assert!(found.unwrap().iter().all(|address| address.ends_with(":7")));
}
