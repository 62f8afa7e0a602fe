//! Random scripts of clients.

use proptest::prelude::*;

/// A piece of a script as [`any_cut`](crate::check::any_cut) reads it: bytes of a client, filler,
/// or a step of the clock.
pub(super) fn piece() -> impl Strategy<Value = Vec<u8>> {
    let whole = [
        "get a b\r\n",
        "gets a\r\n",
        "gat 10 a b\r\n",
        "set a 1 0 3\r\nabc\r\n",
        "add b 0 0 0\r\n\r\n",
        "append a 0 0 2\r\nxy\r\n",
        "incr a 1\r\n",
        "delete a noreply\r\n",
        "touch a 5\r\n",
        "mg a v k O1 t c\r\n",
        "mg c N10 v\r\n",
        "ms a 2 c T9\r\nhi\r\n",
        "md a I\r\n",
        "ma n N0 v\r\n",
        "me a\r\n",
        "mn\r\n",
        "stats\r\n",
        "flush_all\r\n",
        "lru_crawler metadump all\r\n",
        "set big 9 5 70000\r\n",
        "set big 3 2 66560\r\n\0\u{40}\r\n",
        "set a 0 0 262144\r\n\0\u{7f}\0\u{7f}\r\n",
        "append big 0 0 1024\r\n\0\0\r\n",
        "prepend a 0 0 66560\r\n\0\u{40}\r\n",
        "ms b 2048 T3 MA N4 s c\r\n\0\u{1}\r\n",
        "md b x T2\r\n",
        "get big a b\r\n",
        "mg big v t s\r\n",
        "gat 1 big\r\n",
        "set huge 0 0 2000000\r\n",
        "ms b 5 ! \r\n12345\r\n",
        "quit\r\n",
    ];
    prop_oneof![
        12 => proptest::sample::select(whole.to_vec()).prop_map(|text| text.as_bytes().to_vec()),
        1 => proptest::collection::vec(any::<u8>(), 0..20),
        1 => Just(vec![b'v'; 3000]),
        1 => Just(b"\r\n".to_vec()),
        2 => (0_u8..9).prop_map(|seconds| vec![1, seconds]),
        1 => any::<u8>().prop_map(|kibibytes| vec![0, kibibytes]),
    ]
}
