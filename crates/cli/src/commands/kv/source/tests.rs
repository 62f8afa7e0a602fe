//! Lines in which memcached lists its keys, and a memcached without meta commands.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};

use super::{Source, listing};

#[test]
fn a_line_of_the_list_has_key_and_expiry() {
    let line = "key=a%20%25b exp=1900000000 la=1 cas=2 fetch=no cls=1 size=60";
    assert_eq!(listing(line).unwrap(), (b"a %b".to_vec(), 1_900_000_000));
    assert_eq!(listing("key=a exp=-1 la=1").unwrap(), (b"a".to_vec(), 0));
    for wrong in [
        "key=a",
        "key=a%2 exp=1",
        "key=a exp=x",
        "exp=1 key=a",
        "key=%zz exp=1",
    ] {
        assert!(listing(wrong).is_err(), "{wrong}");
    }
}

/// Answers one connection as memcached 1.5 does. It lists more keys than it has.
fn answer_as_old(stream: TcpStream) {
    let mut lines = BufReader::new(stream.try_clone().unwrap());
    let (mut stream, mut line) = (stream, Vec::new());
    while lines.read_until(b'\n', &mut line).is_ok_and(|len| len > 0) {
        let answer: &[u8] = match line.trim_ascii_end() {
            b"lru_crawler metadump all" => {
                b"key=gone exp=-1\nkey=a exp=-1\nkey=a%20b exp=-1\nkey=gone2 exp=-1\n\
                  key=%C3%BC exp=1900000000\nkey=%FF exp=-1\nkey=%FE exp=-1\nEND\r\n"
            }
            b"get gone a gone2 \xc3\xbc \xff \xfe" => {
                b"VALUE a 7 3\r\nEND\r\nVALUE \xc3\xbc 0 0\r\n\r\nVALUE \xfe 0 1\r\nx\r\nEND\r\n"
            }
            _ => b"ERROR\r\n",
        };
        stream.write_all(answer).unwrap();
        line.clear();
    }
}

#[test]
fn a_memcached_without_meta_commands_is_read_by_get() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let server = std::thread::spawn(move || {
        let accept = || listener.accept().unwrap().0;
        let all: Vec<_> = [accept(), accept()]
            .into_iter()
            .map(|stream| std::thread::spawn(|| answer_as_old(stream)))
            .collect();
        all.into_iter().for_each(|one| one.join().unwrap());
    });
    let mut source = Source::open(&address, None).unwrap();
    let part = source.next_items().unwrap().unwrap();
    assert!(source.next_items().unwrap().is_none());
    drop(source);
    server.join().unwrap();
    let items: Vec<_> = part
        .items
        .iter()
        .map(|it| (&it.key[..], &it.value[..], it.flags, it.expires))
        .collect();
    assert_eq!(
        items,
        [
            (&b"a"[..], &b"END"[..], 7, 0),
            ("\u{fc}".as_bytes(), b"", 0, 1_900_000_000),
            (&[0xfe], b"x", 0, 0)
        ]
    );
    assert_eq!((part.gone, part.nameless), (3, vec![b"a b".to_vec()]));
}
