//! The limits of metadata, and the room that a trace always has.

use dunlin_core::Nanos;

use super::*;
use crate::frame::{self, Front};
use crate::metadata::split;

const TRACE_TEXT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// Metadata with this many entries.
fn of(entries: usize) -> Meta {
    let mut meta = Meta::new();
    for entry in 0..entries {
        meta.add(&format!("key{entry}"), "value").unwrap();
    }
    meta
}

/// Whether a server takes these metadata, and reads them as they were written.
fn arrives(meta: &Meta) -> bool {
    let front = Front::with(Some(Nanos::from_micros(1)), meta);
    let mut bytes = vec![0; front.size()];
    front.write(&mut bytes);
    frame::read(&bytes).is_ok_and(|(_, read, _)| read == meta.view())
}

#[test]
fn metadata_that_are_full_have_room_for_a_trace() {
    let mut many = of(MAX_KEYS - 1);
    assert_eq!(many.add("another", ""), Err(MetaError::TooMany));
    let mut long = Meta::new();
    let most = MAX_ENTRIES - TRACE_ENTRY - LENGTHS - 1;
    assert_eq!(
        long.add("k", &"x".repeat(most + 1)),
        Err(MetaError::TooLong)
    );
    long.add("k", &"x".repeat(most)).unwrap();
    assert_eq!(long.add("m", ""), Err(MetaError::TooLong));
    for full in [&mut many, &mut long] {
        assert!(arrives(full));
        full.add(TRACE, TRACE_TEXT).unwrap();
        assert!(arrives(full));
        let trace = full.view().trace_parent().unwrap();
        assert_eq!(trace.to_string(), TRACE_TEXT);
    }
    assert_eq!(long.entries().len(), MAX_ENTRIES);
    assert_eq!(many.view().iter().count(), MAX_KEYS - 1);
    assert_eq!(many.add("another", ""), Err(MetaError::TooMany));
    // A trace that is added first takes only the room reserved for it.
    let mut first = Meta::new();
    first.add(TRACE, TRACE_TEXT).unwrap();
    first.add("k", &"x".repeat(most)).unwrap();
    assert_eq!(first.entries().len(), MAX_ENTRIES);
}

/// [`split`] accepts such metadata, although [`Meta::add`] does not write them.
#[test]
fn a_trace_is_not_added_to_arrived_metadata_without_room_for_it() {
    let mut long = Meta::new();
    long.put("k", &[b'x'; MAX_ENTRIES - LENGTHS - 1]);
    let mut many = Meta::new();
    for entry in 0..MAX_KEYS {
        many.put(&format!("key{entry}"), b"");
    }
    for (full, error) in [(long, MetaError::TooLong), (many, MetaError::TooMany)] {
        let entries = full.entries();
        let (arrived, _) = split(entries, entries.len()).unwrap();
        let mut copy = arrived.to_owned();
        assert_eq!(copy.add(TRACE, TRACE_TEXT), Err(error));
        assert!(copy == full && arrives(&copy));
    }
}

#[test]
fn keys_and_values_that_cannot_be_sent_are_refused() {
    let longest = "k".repeat(MAX_KEY);
    let longer = "k".repeat(MAX_KEY + 1);
    for (key, value, expected) in [
        ("a-z_0.9", "", Ok(())),
        (&longest, "any text: \u{1F986}\0", Ok(())),
        (&longer, "", Err(MetaError::Key)),
        ("", "", Err(MetaError::Key)),
        ("K", "", Err(MetaError::Key)),
        ("a/b", "", Err(MetaError::Key)),
        ("k\u{e9}", "", Err(MetaError::Key)),
        ("dunlin.x", "", Err(MetaError::Reserved)),
        ("dunlin", "", Ok(())),
        ("key0", "other", Err(MetaError::Twice)),
        (TRACE, "00", Err(MetaError::Trace)),
    ] {
        let mut meta = of(2);
        assert_eq!(meta.add(key, value), expected, "{key:?}");
        let added = usize::from(expected.is_ok());
        assert_eq!(meta.view().iter().count(), 2 + added, "{key:?}");
        assert!(arrives(&meta));
    }
    let mut traced = Meta::new();
    traced.add(TRACE, TRACE_TEXT).unwrap();
    assert_eq!(traced.add(TRACE, TRACE_TEXT), Err(MetaError::Twice));
}

#[test]
fn metadata_show_their_values() {
    let mut meta = of(2);
    meta.add(TRACE, TRACE_TEXT).unwrap();
    let view = meta.view();
    assert_eq!(view.get("key1"), Some("value"));
    assert_eq!((view.get("key2"), view.get(TRACE)), (None, None));
    let text = format!("{{\"key0\": \"value\", \"key1\": \"value\", {TRACE:?}: {TRACE_TEXT:?}}}");
    assert_eq!(format!("{meta:?}"), text);
    meta.clear();
    assert!(meta.is_empty() && meta.view().is_empty());
}

#[test]
fn the_text_of_a_trace_has_one_form() {
    let later = "01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more";
    assert!(later.parse::<TraceParent>().is_ok());
    let trace: TraceParent = TRACE_TEXT.parse().unwrap();
    let again = TraceParent::new(trace.trace(), trace.span(), trace.is_sampled());
    assert_eq!(again, trace);
    assert_eq!((trace.trace()[0], trace.trace()[15]), (0x0a, 0x9c));
    assert_eq!((trace.span()[0], trace.span()[7]), (0xb7, 0x31));
    for wrong in [
        "",
        "00",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-",
        "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319-b7ad6b7169203331-01",
        "00-00000000000000000000000000000000-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
        "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "0g-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    ] {
        assert_eq!(
            wrong.parse::<TraceParent>(),
            Err(crate::NotATrace),
            "{wrong}"
        );
    }
}
