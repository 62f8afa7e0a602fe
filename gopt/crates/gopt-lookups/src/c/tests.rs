//! The C sources, compiled by gcc with its sanitizers and by clang; all warnings are errors. A
//! program (`tests/driver.c`) runs every form over a table that these tests made, and must find the
//! values that the Rust code finds.

use std::ffi::OsString;
use std::fs;
use std::io::{BufWriter, Write as _};
use std::mem::offset_of;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::tables::{BTreeInC, ChainInC, CuckooInC, MicaInC, Table, TrieInC};
use super::{Packet, WIDTHS};
use crate::btree::BTree;
use crate::cuckoo::Cuckoo;
use crate::forms;
use crate::ipv4::Ipv4;
use crate::ipv6::Ipv6;
use crate::mica::Mica;
use crate::pointer_chasing::Chain;
use crate::random::Random;
use crate::trie::Route;
use crate::work::{Handled, Handler, Tight};

/// Where an array's pointer lies in `struct table`, and the array.
type Array<'a> = (usize, &'a [u8]);

/// The compilers of the sources. Without optimisation, the compiler drops no access, so the
/// sanitizers see all of them. Only gcc runs with sanitizers, because many distributions leave out
/// clang's.
const COMPILERS: [(&str, &[&str]); 2] = [
    (
        "gcc",
        &[
            "-O0",
            "-fsanitize=address,undefined",
            "-fno-sanitize-recover=all",
        ],
    ),
    ("clang", &["-O1"]),
];

const STRICT: [&str; 4] = ["-std=gnu11", "-Wall", "-Wextra", "-Werror"];

/// Keys of each run: not a multiple of any width.
const KEYS: usize = 333;

fn bytes<T>(values: &[T]) -> &[u8] {
    // SAFETY: this is only called for integers, and for structures of integers without gaps.
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) }
}

/// Results that a program wrote, as values of the type that it wrote.
fn values<T: Copy>(bytes: &[u8]) -> Vec<T> {
    assert_eq!(bytes.len() % size_of::<T>(), 0);
    let values = bytes.chunks_exact(size_of::<T>());
    // SAFETY: the program wrote values of this layout (`layout`).
    values
        .map(|value| unsafe { value.as_ptr().cast::<T>().read_unaligned() })
        .collect()
}

/// A folder of one test, removed at its end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("gopt-lookups-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

/// Checks both shapes of a look-up, each with every compiler that is installed.
fn check<T>(name: &str, table: &T, arrays: &[Array<'_>], keys: &[T::Key])
where
    T: Table,
    T::Value: PartialEq + std::fmt::Debug,
{
    let nothing = table.find(keys[0]);
    let mut expected = vec![nothing; keys.len()];
    forms::plain(table, &Tight, keys, &mut expected);
    check_shape((name, "tight"), table, arrays, keys, &expected);

    let mut random = Random::new(1);
    let packet = |&key| Packet {
        words: std::array::from_fn(|_| random.bits()),
        key,
    };
    let packets: Vec<_> = keys.iter().map(packet).collect();
    let empty = Handled {
        value: nothing,
        digest: 0,
    };
    let mut expected = vec![empty; keys.len()];
    forms::plain(table, &Handler, &packets, &mut expected);
    check_shape((name, "handler"), table, arrays, &packets, &expected);
}

fn check_shape<T: Table, I, O: Copy + PartialEq + std::fmt::Debug>(
    (name, shape): (&str, &str),
    table: &T,
    arrays: &[Array<'_>],
    items: &[I],
    expected: &[O],
) {
    let folder = Folder::new(&format!("{name}-{shape}"));
    let [input, output, program] = ["in", "out", "program"].map(|name| folder.0.join(name));
    write_input(
        &input,
        bytes(&[table.in_c()]),
        arrays,
        bytes(items),
        items.len(),
    );
    for (compiler, flags) in COMPILERS {
        if !is_there(compiler) {
            continue;
        }
        compile((compiler, flags), name, shape, &program);
        // The program frees nothing before its end, so leaks are not checked.
        let ran = Command::new(&program)
            .env("ASAN_OPTIONS", "detect_leaks=0")
            .arg(&input)
            .arg(&output)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&ran.stderr);
        assert!(
            ran.status.success(),
            "{name}, {shape}, {compiler}: {ran:?}\n{said}"
        );
        let found: Vec<O> = values(&fs::read(&output).unwrap());
        assert_eq!(found, expected, "{name}, {shape}, {compiler}");
    }
}

/// The input of the driver: `struct table`, its arrays, the items.
fn write_input(path: &Path, table: &[u8], arrays: &[Array<'_>], items: &[u8], count: usize) {
    let mut file = BufWriter::new(fs::File::create(path).unwrap());
    let number = |file: &mut BufWriter<_>, number: usize| {
        file.write_all(&(number as u64).to_ne_bytes()).unwrap();
    };
    number(&mut file, table.len());
    file.write_all(table).unwrap();
    number(&mut file, arrays.len());
    for (place, array) in arrays {
        number(&mut file, *place);
        number(&mut file, array.len());
        file.write_all(array).unwrap();
    }
    number(&mut file, count);
    file.write_all(items).unwrap();
    file.flush().unwrap();
}

/// Whether a compiler is installed. gcc or another C compiler has built this crate, so one usually
/// is.
///
/// # Panics
/// If it is not, and `DUNLIN_NO_SKIP` is 1.
fn is_there(compiler: &str) -> bool {
    let version = Command::new(compiler)
        .arg("--version")
        .stdout(Stdio::null())
        .status();
    let is_there = version.is_ok_and(|status| status.success());
    let may_lack = std::env::var_os("DUNLIN_NO_SKIP").is_none_or(|value| value != "1");
    assert!(
        is_there || may_lack,
        "DUNLIN_NO_SKIP is set, and there is no {compiler}"
    );
    is_there
}

fn compile((compiler, flags): (&str, &[&str]), name: &str, shape: &str, program: &Path) {
    let crate_path = Path::new(env!("CARGO_MANIFEST_DIR"));
    let widths = WIDTHS.map(|width| width.to_string()).join(",");
    let forms = format!("gopt_{}_{shape}", name.replace('-', "_"));
    let mut command = Command::new(compiler);
    command.args(STRICT);
    command.args(flags);
    command.arg(format!("-DUNIT=\"{name}-{shape}.c\""));
    command
        .arg(format!("-DFORMS={forms}"))
        .arg(format!("-DWIDTHS={widths}"));
    for folder in [crate_path.join("c"), PathBuf::from(env!("OUT_DIR"))] {
        let mut include = OsString::from("-I");
        include.push(folder);
        command.arg(include);
    }
    command.arg(crate_path.join("src/c/tests/driver.c"));
    succeed(command.arg("-o").arg(program));
}

fn succeed(command: &mut Command) {
    let ended = command.output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{command:?}:\n{said}");
}

#[test]
fn chains_are_read_within_bounds() {
    let mut random = Random::new(2);
    let chain = Chain::new(1001, 9, &mut random).unwrap();
    let arrays = [(offset_of!(ChainInC, next), bytes(&chain.next))];
    let keys: Vec<u32> = (0..KEYS).map(|_| small(random.below(1001))).collect();
    check("pointer-chasing", &chain, &arrays, &keys);
}

#[test]
fn cuckoo_tables_are_read_within_bounds() {
    let mut random = Random::new(3);
    let mut table = Cuckoo::new(6).unwrap();
    for key in 1..450 {
        table.insert(key, key * 7).unwrap();
    }
    let arrays = [(offset_of!(CuckooInC, buckets), bytes(&table.buckets))];
    let keys: Vec<u32> = (0..KEYS).map(|_| small(random.below(600))).collect();
    check("cuckoo", &table, &arrays, &keys);
}

#[test]
fn mica_tables_are_read_within_bounds() {
    let mut random = Random::new(4);
    // The log is too small for all keys, so some slots lead to entries that were overwritten.
    let mut table = Mica::new(5, 7).unwrap();
    for key in 0..300 {
        table.set(key, [key, 1, 2]);
    }
    let arrays = [
        (offset_of!(MicaInC, buckets), bytes(&table.buckets)),
        (offset_of!(MicaInC, entries), bytes(&table.entries)),
    ];
    let keys: Vec<u64> = (0..KEYS).map(|_| random.below(400)).collect();
    check("mica", &table, &arrays, &keys);
}

#[test]
fn routes_are_read_within_bounds() {
    let mut random = Random::new(5);
    let mut route = |longest: u64| {
        let address = u128::from(random.bits()) << 64 | u128::from(random.bits());
        let len = u8::try_from(random.below(longest + 1)).unwrap();
        (address, len, small(random.below(100)))
    };
    let narrow: Vec<_> = (0..200).map(|_| route(32)).collect();
    let wide: Vec<_> = (0..200).map(|_| route(128)).collect();
    let narrow_routes = narrow.iter().map(|&(address, len, hop)| Route {
        address: high(address),
        len,
        hop,
    });
    let table = Ipv4::new(narrow_routes).unwrap();
    let keys: Vec<u32> = (0..KEYS)
        .map(|at| high(narrow[at % 200].0) ^ small(at as u64 % 3))
        .collect();
    check("ipv4", &table, &trie(&table.trie), &keys);

    let wide_routes = wide
        .iter()
        .map(|&(address, len, hop)| Route { address, len, hop });
    let table = Ipv6::new(wide_routes).unwrap();
    let keys: Vec<u128> = (0..KEYS)
        .map(|at| wide[at % 200].0 ^ (at as u128 % 3))
        .collect();
    check("ipv6", &table, &trie(&table.trie), &keys);
}

#[test]
fn btrees_are_read_within_bounds() {
    let mut random = Random::new(6);
    let table = BTree::new((0..9001_u32).map(|at| (u64::from(at) * 3, u64::from(at)))).unwrap();
    let mut arrays = vec![
        (offset_of!(BTreeInC, leaves), bytes(&table.leaves)),
        (offset_of!(BTreeInC, values), bytes(&table.values)),
    ];
    for (level, nodes) in table.inner.iter().enumerate() {
        arrays.push((
            offset_of!(BTreeInC, inner) + level * size_of::<usize>(),
            bytes(nodes),
        ));
    }
    let mut keys: Vec<u64> = (0..KEYS).map(|_| random.below(27_100)).collect();
    keys[7] = u64::MAX;
    check("btree", &table, &arrays, &keys);
}

#[test]
fn the_automata_compile_without_warnings() {
    let folder = Folder::new("aho-corasick");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("c/aho-corasick.c");
    for (compiler, _) in COMPILERS {
        if is_there(compiler) {
            let mut command = Command::new(compiler);
            command.args(STRICT).args(["-O2", "-c", "-o"]);
            succeed(command.arg(folder.0.join("object")).arg(&source));
        }
    }
}

fn trie(trie: &crate::trie::Trie) -> [Array<'_>; 2] {
    [
        (offset_of!(TrieInC, first), bytes(&trie.first)),
        (offset_of!(TrieInC, groups), bytes(&trie.groups)),
    ]
}

fn small(number: u64) -> u32 {
    u32::try_from(number).unwrap()
}

fn high(address: u128) -> u32 {
    u32::try_from(address >> 96).unwrap()
}
