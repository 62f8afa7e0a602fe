//! Every codec: round trips, and messages between two versions of a type.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use zerocopy::little_endian::U32;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::{Codec, DecodeError};
use crate::{Fixed, Growing, Grown, Postcard, Prost};

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, PartialEq, Debug)]
#[repr(C)]
struct Small {
    id: U32,
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, PartialEq, Debug)]
#[repr(C)]
struct Large {
    id: U32,
    weight: U32,
}

#[derive(Serialize, Deserialize, PartialEq, Debug)]
struct Note {
    text: String,
}

#[derive(Serialize, Deserialize, PartialEq, Debug)]
struct LongNote {
    text: String,
    author: String,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Person {
    #[prost(string, tag = "1")]
    name: String,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Employee {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(uint32, tag = "2")]
    room: u32,
}

#[derive(Serialize, Deserialize, PartialEq, Debug)]
enum Shape {
    Dot,
}

#[derive(Serialize, Deserialize, PartialEq, Debug)]
enum MoreShapes {
    Dot,
    Line(u32),
}

#[derive(Clone, Copy, PartialEq, Debug, prost::Enumeration)]
#[repr(i32)]
enum Color {
    Red = 0,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
struct Painted {
    #[prost(enumeration = "Color", tag = "1")]
    color: i32,
}

fn bytes_of<C: Codec<T>, T>(value: &T) -> Vec<u8> {
    let mut bytes = vec![0xAA; C::size(value).unwrap()];
    C::encode(value, &mut bytes);
    bytes
}

fn value_of<C: Codec<T>, T>(bytes: &[u8]) -> Result<T, DecodeError> {
    C::decode(bytes).map(C::to_owned)
}

#[test]
fn a_fixed_layout_is_read_where_it_lies_at_any_address() {
    let (id, weight) = (U32::new(1), U32::new(2));
    let large = Large { id, weight };
    let bytes = bytes_of::<Fixed, _>(&large);
    for offset in 0..4 {
        let mut shifted = vec![0; offset];
        shifted.extend(&bytes);
        let there: &Large = Fixed::decode(&shifted[offset..]).unwrap();
        assert_eq!(there, &large);
        assert!(std::ptr::eq(
            shifted[offset..].as_ptr(),
            std::ptr::from_ref(there).cast()
        ));
    }
    assert_eq!(value_of::<Fixed, Small>(&bytes), Ok(Small { id }));
    let short = Err(DecodeError::TooShort { len: 4, needed: 8 });
    assert_eq!(value_of::<Fixed, Large>(&bytes[..4]), short);
}

#[test]
fn a_layout_that_has_grown_reads_messages_of_the_old_one() {
    let (id, weight) = (U32::new(1), U32::new(2));
    let whole = bytes_of::<Growing<4>, _>(&Large { id, weight });
    for (len, weight) in [(4, 0), (5, 2), (8, 2)] {
        let large = Growing::<4>::decode(&whole[..len]).unwrap();
        let large: Grown<'_, Large> = large;
        assert_eq!(matches!(large, Grown::Whole(_)), len == 8);
        assert_eq!((large.id, large.weight), (id, U32::new(weight)));
    }
    let short = Err(DecodeError::TooShort { len: 3, needed: 4 });
    assert_eq!(value_of::<Growing<4>, Large>(&whole[..3]), short);
}

#[test]
fn postcard_ignores_bytes_after_a_value() {
    let (text, author) = ("text".to_owned(), "author".to_owned());
    let bytes = bytes_of::<Postcard, _>(&LongNote {
        text: text.clone(),
        author,
    });
    assert_eq!(value_of::<Postcard, Note>(&bytes), Ok(Note { text }));
    for cut in 0..bytes.len() {
        let cut = value_of::<Postcard, LongNote>(&bytes[..cut]);
        assert!(matches!(cut, Err(DecodeError::TooShort { .. })), "{cut:?}");
    }
    assert_eq!(
        value_of::<Postcard, Note>(&[1, 0xFF]),
        Err(DecodeError::Malformed)
    );
}

#[test]
fn protocol_buffers_read_older_and_newer_messages() {
    let (name, room) = ("name".to_owned(), 7);
    let employee = Employee {
        name: name.clone(),
        room,
    };
    let bytes = bytes_of::<Prost, _>(&employee);
    assert_eq!(value_of::<Prost, Employee>(&bytes), Ok(employee));
    let person = Person { name: name.clone() };
    assert_eq!(value_of::<Prost, Person>(&bytes), Ok(person.clone()));
    let bytes = bytes_of::<Prost, _>(&person);
    assert_eq!(
        value_of::<Prost, Employee>(&bytes),
        Ok(Employee { name, room: 0 })
    );
    assert_eq!(
        value_of::<Prost, Person>(&[0x0A, 200]),
        Err(DecodeError::Malformed)
    );
}

#[test]
fn a_variant_that_is_not_known_is_refused_or_kept_as_a_number() {
    let old = bytes_of::<Postcard, _>(&Shape::Dot);
    assert_eq!(value_of::<Postcard, _>(&old), Ok(MoreShapes::Dot));
    let new = bytes_of::<Postcard, _>(&MoreShapes::Line(1));
    let refused = value_of::<Postcard, Shape>(&new);
    assert_eq!(refused, Err(DecodeError::Malformed));
    let painted = Painted { color: 7 };
    let kept = value_of::<Prost, Painted>(&bytes_of::<Prost, _>(&painted));
    assert_eq!(kept, Ok(painted));
    assert_eq!(Color::try_from(7).ok(), None);
    assert_eq!(Painted::default().color(), Color::Red);
}

#[derive(Serialize, Deserialize, PartialEq, Debug)]
struct Chain(Option<Box<Chain>>);

#[test]
fn postcard_refuses_messages_that_nest_without_end() {
    let chain = |links| {
        let link = |chain, _| Chain(Some(Box::new(chain)));
        bytes_of::<Postcard, _>(&(0..links).fold(Chain(None), link))
    };
    // Each `Chain` is one level.
    assert!(value_of::<Postcard, Chain>(&chain(127)).is_ok());
    for deep in [chain(128), vec![1; 1 << 20]] {
        let deep = value_of::<Postcard, Chain>(&deep);
        assert_eq!(deep, Err(DecodeError::Malformed));
    }
}

#[test]
fn postcard_refuses_more_elements_without_bytes_than_a_message_may_have() {
    let few = bytes_of::<Postcard, _>(&vec![(); 4000]);
    assert_eq!(value_of::<Postcard, Vec<()>>(&few), Ok(vec![(); 4000]));
    // A list that has 2^62 elements, by its length, and a map.
    let many = [[0x80; 8].as_slice(), &[0x40]].concat();
    let list = value_of::<Postcard, Vec<()>>(&many);
    assert_eq!(list, Err(DecodeError::Malformed));
    let map = value_of::<Postcard, BTreeMap<(), ()>>(&many);
    assert_eq!(map, Err(DecodeError::Malformed));
    // A list of lists, each of which has fewer elements than the message has bytes.
    let mut lists = bytes_of::<Postcard, _>(&vec![vec![(); 200]; 1000]);
    lists.extend([0; 1000]);
    let lists = value_of::<Postcard, Vec<Vec<()>>>(&lists);
    assert_eq!(lists, Err(DecodeError::Malformed));
}
