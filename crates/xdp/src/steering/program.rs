//! The program at the interface: takes a packet only if its address, VLAN and port are an
//! endpoint's, and it came to a queue of that endpoint. All else passes to the kernel, and so do
//! fragments (the first too) and packets with options or extension headers.

use super::assemble::Register::{R0, R1, R2, R3, R4, R5, R6, R10};
use super::assemble::Width::{Byte, Double, Half, Word};
use super::assemble::{Assembler, If, Label};
use super::numbers::MAX_SOCKETS;
use dunlin_packet::{ETHERNET, IPV4, IPV6, PROTOCOL_UDP, TAG, TYPE_IPV4, TYPE_IPV6, TYPE_TAG, UDP};

/// Bytes of a key: the address in its IPv6 form, the port, the VLAN with [`MARK`], and the queue.
pub(super) const KEY: usize = 24;
/// A bit of the VLAN that all keys have, so that none is zero.
pub(super) const MARK: u16 = 0x8000;
/// Bytes of the value of a key: the number of a socket, and the inode number of the UDP socket that
/// has the address. The program does not read the latter.
pub(super) const VALUE: usize = 12;

/// The stack below the frame pointer, where the key is put together.
const KEY_AT: i16 = -24;
const NUMBER_AT: i16 = -32;
const ADDRESS_END: i16 = KEY_AT + 12;
const PORT_AT: i16 = KEY_AT + 16;
const VLAN_AT: i16 = KEY_AT + 18;
const QUEUE_AT: i16 = KEY_AT + 20;

/// `struct xdp_md`: the packet's start and end, and the queue.
const DATA: i16 = 0;
const DATA_END: i16 = 4;
const QUEUE: i16 = 16;

/// Functions of the kernel.
const MAP_LOOKUP: i32 = 1;
const REDIRECT_MAP: i32 = 51;

/// `XDP_PASS`.
const PASS: i32 = 2;

/// The descriptors of the program's maps.
#[derive(Clone, Copy, Debug)]
pub(super) struct Maps {
    /// From the keys of all endpoints to their sockets.
    pub(super) homes: i32,
    /// For each number, a key whose packets go to the socket with this number. It is a key for
    /// which [`number_of`] gives this number.
    pub(super) places: i32,
    /// The sockets by their numbers.
    pub(super) sockets: i32,
}

/// The number at which the program looks for a key first.
pub(super) fn number_of(key: &[u8; KEY]) -> u32 {
    let [port, queue] = [PORT_AT + 1, QUEUE_AT].map(|at| usize::from((at - KEY_AT).unsigned_abs()));
    let queue = key[queue..].first_chunk().expect("a key ends with it");
    u32::from(key[port]).wrapping_add(u32::from_ne_bytes(*queue)) & LAST_NUMBER.cast_unsigned()
}

/// The last number of a socket; all bits of it are set.
const LAST_NUMBER: i32 = 255;
const _: () = assert!(LAST_NUMBER.cast_unsigned() + 1 == MAX_SOCKETS);

/// The program with these maps.
pub(super) fn steering(maps: &Maps) -> Vec<u64> {
    let mut code = Assembler::default();
    let [v4, v6, look, pass] = [(); 4].map(|()| code.label());
    // R6 is the context, R2 the packet (moved on if there is a tag), R3 its end.
    code.copy(R6, R1);
    code.load(Word, R2, R6, DATA);
    code.load(Word, R3, R6, DATA_END);
    ethernet(&mut code, v4, v6, pass);
    code.place(v4);
    ipv4(&mut code, look, pass);
    code.place(v6);
    ipv6(&mut code, pass);
    code.place(look);
    code.load(Word, R4, R6, QUEUE);
    code.store(Word, R10, QUEUE_AT, R4);
    let [search, found] = [(); 2].map(|()| code.label());
    look_at_number(&mut code, maps.places, search);
    code.jump(found);
    code.place(search);
    lookup(&mut code, maps.homes, KEY_AT, pass);
    code.load(Word, R2, R0, 0);
    code.place(found);
    code.set_map(R1, maps.sockets);
    // If the socket is gone, the packet passes.
    code.set(R3, PASS);
    code.call(REDIRECT_MAP);
    code.exit();
    code.place(pass);
    code.set(R0, PASS);
    code.exit();
    code.finish()
}

/// R0 = the place of the value of the key at `key` on the stack; jumps if there is none.
fn lookup(code: &mut Assembler, map: i32, key: i16, absent: Label) {
    code.set_map(R1, map);
    code.copy(R2, R10);
    code.add_number(R2, i32::from(key));
    code.call(MAP_LOOKUP);
    code.jump_if(If::Equal, R0, 0, absent);
}

/// R2 = the [`number_of`] the key, whose queue is in R4, if the map `places` has the key at this
/// number; otherwise jumps to `search`.
fn look_at_number(code: &mut Assembler, places: i32, search: Label) {
    code.load(Byte, R5, R10, PORT_AT + 1);
    code.add(R5, R4);
    code.and(R5, LAST_NUMBER);
    code.store(Word, R10, NUMBER_AT, R5);
    lookup(code, places, NUMBER_AT, search);
    for at in (0..offset(KEY)).step_by(8) {
        code.load(Double, R4, R10, KEY_AT + at);
        code.load(Double, R5, R0, at);
        code.jump_if_both(If::NotEqual, R4, R5, search);
    }
    code.load(Word, R2, R10, NUMBER_AT);
}

/// Passes the packet to the kernel if it has fewer than `bytes` bytes.
fn need(code: &mut Assembler, bytes: usize, pass: Label) {
    code.copy(R4, R2);
    code.add_number(R4, i32::try_from(bytes).expect("headers are short"));
    code.jump_if_both(If::Greater, R4, R3, pass);
}

fn ethernet(code: &mut Assembler, v4: Label, v6: Label, pass: Label) {
    let untagged = code.label();
    code.store_number(Half, R10, VLAN_AT, as_loaded(MARK));
    need(code, ETHERNET, pass);
    code.load(Half, R5, R2, 12);
    code.jump_if(If::NotEqual, R5, as_loaded(TYPE_TAG), untagged);
    need(code, ETHERNET + TAG, pass);
    code.load(Half, R4, R2, 14);
    code.and(R4, as_loaded(0x0FFF));
    code.add_number(R4, as_loaded(MARK));
    code.store(Half, R10, VLAN_AT, R4);
    code.load(Half, R5, R2, 16);
    code.add_number(R2, 4);
    code.place(untagged);
    code.jump_if(If::Equal, R5, as_loaded(TYPE_IPV4), v4);
    code.jump_if(If::Equal, R5, as_loaded(TYPE_IPV6), v6);
    code.jump(pass);
}

fn ipv4(code: &mut Assembler, look: Label, pass: Label) {
    let ip = offset(ETHERNET);
    need(code, ETHERNET + IPV4 + UDP, pass);
    code.load(Byte, R4, R2, ip);
    code.jump_if(If::NotEqual, R4, 0x45, pass);
    code.load(Byte, R4, R2, ip + 9);
    code.jump_if(If::NotEqual, R4, i32::from(PROTOCOL_UDP), pass);
    code.load(Half, R4, R2, ip + 6);
    code.jump_if(If::AnyBit, R4, as_loaded(0x3FFF), pass);
    code.store_number(Double, R10, KEY_AT, 0);
    code.store_number(Half, R10, KEY_AT + 8, 0);
    code.store_number(Half, R10, KEY_AT + 10, 0xFFFF);
    code.load(Word, R4, R2, ip + 16);
    code.store(Word, R10, ADDRESS_END, R4);
    code.load(Half, R4, R2, ip + offset(IPV4) + 2);
    code.store(Half, R10, PORT_AT, R4);
    code.jump(look);
}

fn ipv6(code: &mut Assembler, pass: Label) {
    let ip = offset(ETHERNET);
    need(code, ETHERNET + IPV6 + UDP, pass);
    code.load(Byte, R4, R2, ip);
    code.and(R4, 0xF0);
    code.jump_if(If::NotEqual, R4, 0x60, pass);
    code.load(Byte, R4, R2, ip + 6);
    code.jump_if(If::NotEqual, R4, i32::from(PROTOCOL_UDP), pass);
    for word in 0..4 {
        code.load(Word, R4, R2, ip + 24 + 4 * word);
        code.store(Word, R10, KEY_AT + 4 * word, R4);
    }
    code.load(Half, R4, R2, ip + offset(IPV6) + 2);
    code.store(Half, R10, PORT_AT, R4);
}

fn offset(bytes: usize) -> i16 {
    i16::try_from(bytes).expect("headers are short")
}

/// A number of the packet, in the byte order in which a load reads it.
fn as_loaded(number: u16) -> i32 {
    i32::from(number.to_be())
}
