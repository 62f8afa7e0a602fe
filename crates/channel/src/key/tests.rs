//! Hashes of keys, which no release and no compiler may change.

use proptest::prelude::*;

use super::*;

#[derive(Hash)]
struct Item {
    shop: u32,
    name: &'static str,
}

#[derive(Hash)]
enum Either {
    Number(u64),
    Nothing,
}

/// Computed by a program in another language, from the bytes that the page of the type names.
#[test]
fn hashes_are_fixed() {
    let text = String::from("user 7");
    let hashes = [
        (key_of(&()), 0xCBF2_9CE4_8422_2325),
        (key_of(&true), 0xAF63_BC4C_8601_B62C),
        (key_of(&'d'), 0xCC90_4769_0BAE_B3D1),
        (key_of(&7_u8), 0xAF63_BA4C_8601_B2C6),
        (key_of(&7_u32), 0x6D35_7266_9B2C_DE42),
        (key_of(&-7_i32), 0xF463_7672_038F_242F),
        (key_of(&7_u64), 0x4BD7_A317_074C_5B62),
        (key_of(&7_usize), 0x4BD7_A317_074C_5B62),
        (key_of(&-7_isize), 0xBFA4_A0B2_3770_0DFB),
        (key_of(&1_u128), 0x3922_09F1_4DEA_4C24),
        (key_of(""), 0xAF64_724C_8602_EB6E),
        (key_of(&text), 0xC295_7DA5_0DC8_5A44),
        (key_of(b"user 7"), 0x4EDD_CBBA_E2C5_7FB5),
        (key_of(text.as_bytes()), 0x4EDD_CBBA_E2C5_7FB5),
        (key_of(&(7_u64, "a")), 0x1EA1_97C1_95F5_98D2),
        (key_of(&["a", "b"]), 0xAFE6_DD34_8DFB_7270),
        #[cfg(target_endian = "little")]
        (key_of(&[1_u16, 2]), 0x9EED_4012_7C71_5314),
        (key_of(&Some(7_u64)), 0x1A27_42E8_42FB_0203),
        (key_of(&None::<u64>), 0xA8C7_F832_281A_39C5),
    ];
    for (at, (found, expected)) in hashes.into_iter().enumerate() {
        assert_eq!(found, expected, "hash {at} is {found:#018X}");
    }
}

#[test]
fn a_derived_hash_has_the_bytes_of_variant_and_fields() {
    let item = Item { shop: 7, name: "a" };
    assert_eq!(key_of(&item), key_of(&(7_u32, "a")));
    assert_eq!(key_of(&Either::Number(7)), key_of(&(0_u64, 7_u64)));
    assert_eq!(key_of(&Either::Nothing), key_of(&1_u64));
}

proptest! {
    /// The owner of a text does not matter.
    #[test]
    fn equal_keys_have_equal_hashes(text: String) {
        let hash = key_of(text.as_str());
        prop_assert_eq!(key_of(&text), hash);
        prop_assert_eq!(key_of(&Box::<str>::from(text.as_str())), hash);
        prop_assert_eq!(key_of(&text.as_bytes().to_vec()), key_of(text.as_bytes()));
    }
}
