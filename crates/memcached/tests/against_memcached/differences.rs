//! The differences between our answers and memcached's, each with a script that shows it. The table
//! in `docs/memcached.md` has their reasons, in this order.

/// A script, and the beginnings of our answers and of memcached's.
pub(crate) struct Difference(&'static str, &'static str, &'static str);

impl Difference {
    /// The script; `~` is a word of 3000 bytes, `^` a value of 1 MiB.
    pub(crate) fn script(&self) -> Vec<u8> {
        let long = "x".repeat(3000);
        let value = "v".repeat(1 << 20);
        let script = self.0.replace('~', &long).replace('^', &value);
        script
            .chars()
            .map(|byte| u8::try_from(u32::from(byte)).unwrap())
            .collect()
    }

    /// The beginnings of our answers and of memcached's.
    pub(crate) fn answers(&self) -> [Vec<u8>; 2] {
        let bytes = |text: &str| -> Vec<u8> {
            text.chars()
                .map(|byte| u8::try_from(u32::from(byte)).unwrap())
                .collect()
        };
        [bytes(self.1), bytes(self.2)]
    }
}

pub(crate) const ALL: &[Difference] = &[
    // The version.
    Difference(
        "version\r\n",
        "VERSION 1.6.18-dunlin-",
        "VERSION 1.6.18\r\n",
    ),
    // The binary protocol.
    Difference(
        "\u{80}\x0b\0\0\0\0\0\0\0\0\0\0\x01\x02\x03\x04\0\0\0\0\0\0\0\0",
        "\u{81}\x0b\0\0\0\0\0\u{81}\0\0\0\x0f\x01\x02\x03\x04\0\0\0\0\0\0\0\0Unknown command",
        "\u{81}\x0b\0\0\0\0\0\0\0\0\0",
    ),
    // TLS.
    Difference(
        "\x16\x03\x01\r\n",
        "CLIENT_ERROR TLS is not enabled\r\n",
        "ERROR\r\n",
    ),
    // Numbers beyond 32 bits.
    Difference(
        "set a 4294967296 0 1\r\nx\r\n",
        "CLIENT_ERROR bad command line format\r\n",
        "STORED\r\n",
    ),
    Difference(
        "set a 0 0 4294967297\r\nx\r\n",
        "CLIENT_ERROR bad command line format\r\n",
        "STORED\r\n",
    ),
    // Values of 1 MiB.
    Difference(
        "set a 0 0 1048576\r\n^\r\n",
        "STORED\r\n",
        "SERVER_ERROR object too large for cache\r\n",
    ),
    // Lines that are too long.
    Difference(
        "mg ~\r\n",
        "CLIENT_ERROR line too long\r\n",
        "CLIENT_ERROR bad command line format\r\n",
    ),
    // Answers before a key that is too long.
    Difference(
        "delete z\r\nget ~\r\n",
        "NOT_FOUND\r\nCLIENT_ERROR bad command line format\r\n",
        "CLIENT_ERROR bad command line format\r\n",
    ),
    // Counters that are more than digits.
    Difference(
        "set n 0 0 2\r\n 5\r\nincr n 1\r\n",
        "STORED\r\nCLIENT_ERROR cannot increment or decrement non-numeric value\r\n",
        "STORED\r\n6\r\n",
    ),
    // An opaque token that is too long.
    Difference(
        "mg viv N30 O01234567890123456789012345678901\r\nmg viv\r\n",
        "CLIENT_ERROR opaque token too long\r\nEN\r\n",
        "CLIENT_ERROR opaque token too long\r\nHD",
    ),
    // A version that the client chooses.
    Difference(
        "ms e 1 E77 c\r\nx\r\n",
        "HD c77\r\n",
        "CLIENT_ERROR invalid flag\r\n",
    ),
    // The length of a value that was written.
    Difference("ms e 3 s\r\nabc\r\n", "HD s3\r\n", "HD\r\n"),
    // An append that makes the item.
    Difference("ms v 1 MA N30\r\nx\r\n", "HD\r\n", "NS\r\n"),
    // A delete that leaves an empty item.
    Difference(
        "set x 0 0 3\r\nabc\r\nmd x x\r\nget x\r\n",
        "STORED\r\nHD\r\nVALUE x 0 0\r\n\r\nEND\r\n",
        "STORED\r\nCLIENT_ERROR invalid or duplicate flag\r\nVALUE x 0 3\r\n",
    ),
    // Keys in base64.
    Difference("mg YmFz b N30 k\r\n", "HD kYmFz b W\r\n", "HD kbas W\r\n"),
    // Classes and sizes of items.
    Difference(
        "set m 0 0 1\r\nx\r\nstats slabs\r\n",
        "STORED\r\nSTAT 1:chunk_size 8\r\n",
        "STORED\r\nSTAT 1:chunk_size 96\r\n",
    ),
    // Lists of items after other commands.
    Difference(
        "delete z\r\nlru_crawler metadump all\r\n",
        "NOT_FOUND\r\nkey=",
        "NOT_FOUND\r\nERROR cannot pipeline other commands before metadump\r\n",
    ),
    // Commands for slabs, the crawler and watchers.
    Difference(
        "lru_crawler enable\r\n",
        "OK\r\n",
        "ERROR failed to start lru crawler thread\r\n",
    ),
    Difference("slabs automove 1\r\n", "ERROR\r\n", "OK\r\n"),
    Difference(
        "watch fetchers\r\n",
        "CLIENT_ERROR watch commands not allowed\r\n",
        "OK\r\n",
    ),
    // The read mark of a counter that has become longer.
    Difference(
        "set g 0 0 1\r\n9\r\nmg g\r\nincr g 1\r\nmg g h\r\n",
        "STORED\r\nHD\r\n10\r\nHD h1\r\n",
        "STORED\r\nHD\r\n10\r\nHD h0\r\n",
    ),
];
