//! A typed server for a client with metadata to call, compiled against the last commit whose
//! servers know none. `build.sh` copies it into that tree; the test `old_server.rs` of the crate
//! `dunlin` calls it. It runs until it is killed.

use dunlin::service::{Context, Fixed};
use dunlin::{Auto, Cx, Nexus, Rpc, service};
use zerocopy::little_endian::U64;

#[service(codec = Fixed)]
trait Old {
    /// Returns the number plus one.
    #[method(1)]
    fn next(number: U64) -> U64;

    /// Returns the time in microseconds that the client still waits; 0: forever.
    #[method(2)]
    fn patience(number: U64) -> U64;

    /// Returns how often the other handlers have run.
    #[method(3)]
    fn runs(number: U64) -> U64;
}

struct Runs(u64);

impl OldPoll for Runs {
    fn next(&mut self, number: &U64, _: &mut Cx<'_>, _: Context) -> U64 {
        self.0 += 1;
        U64::new(number.get() + 1)
    }

    fn patience(&mut self, _: &U64, cx: &mut Cx<'_>, context: Context) -> U64 {
        self.0 += 1;
        U64::new(context.left(cx.now()).map_or(0, |left| left.0 / 1000))
    }

    fn runs(&mut self, _: &U64, _: &mut Cx<'_>, _: Context) -> U64 {
        U64::new(self.0)
    }
}

fn main() {
    let nexus = Nexus::bind("127.0.0.1:0").expect("the loopback address has a free port");
    let mut rpc: Rpc<Auto, Runs> = nexus.endpoint(Runs(0)).expect("there is room for one");
    OldPoll::register(&mut rpc);
    println!("{}", nexus.address());
    loop {
        rpc.run_once();
    }
}
