//! The keys that a trace requests.

use super::{Numbers, Trace};

#[test]
fn a_trace_requests_all_of_its_keys() {
    let trace = Trace {
        keys: 1000,
        scans: 0,
    };
    let mut numbers = Numbers::new(trace);
    let mut requests = vec![0; 1000];
    for _ in 0..200_000 {
        requests[numbers.next() as usize] += 1;
    }
    let never = requests.iter().filter(|count| **count == 0).count();
    assert_eq!(never, 0, "keys without a request");
}
