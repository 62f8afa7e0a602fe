//! Handles and places.

use super::*;

fn read(values: &Values, handle: Handle) -> Option<Vec<u8>> {
    values.read(handle, <[u8]>::to_vec)
}

#[test]
fn a_handle_leads_to_its_value_until_the_value_is_removed() {
    let values = Values::default();
    let handles: Vec<Handle> = (0..3000_u32)
        .map(|number| values.keep(&number.to_le_bytes()))
        .collect();
    for (handle, number) in handles.iter().zip(0_u32..) {
        assert_eq!(read(&values, *handle), Some(number.to_le_bytes().to_vec()));
    }
    values.take_away(handles[7]);
    values.take_away(handles[7]);
    assert_eq!(read(&values, handles[7]), None);
    let again = values.keep(b"again");
    assert_eq!(again.place, handles[7].place, "the place is used again");
    assert_eq!(read(&values, handles[7]), None);
    values.take_away(handles[7]);
    assert_eq!(read(&values, again), Some(b"again".to_vec()));
    let next = values.keep(b"next");
    assert_eq!(next.place, 3000, "a place is free once");
}
