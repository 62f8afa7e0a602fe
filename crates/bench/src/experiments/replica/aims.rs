//! Aims of the replicated store: the latency of a put as a multiple of the sum of its parts, rates
//! as multiples of etcd's, figures on the paper's network, and killed leaders.

use crate::output::aims::{Aim, Bound, Of};

use Bound::{AtLeast, AtMost};
use Of::{Ratio, Value};

const ONE: Params = &[("outstanding", "1")];
const MANY: Params = &[("outstanding", "32")];
const ON_DISK: Params = &[("outstanding", "128")];
const FABRIC: Params = &[("fabric", "cx5")];

type Params = &'static [(&'static str, &'static str)];

pub(super) const AIMS: &[Aim] = &[
    aim("put_p50", "shm", ONE, Ratio, AtMost(1.15)),
    aim("round_trips", "udp", ONE, Value, AtMost(2.4)),
    aim("puts_per_s", "shm", MANY, Value, AtLeast(150_000.0)),
    aim("puts_per_s", "shm", MANY, Ratio, AtLeast(20.0)),
    aim("bound_ratio", "shm", ON_DISK, Value, AtLeast(0.7)),
    aim("bound_ratio", "udp", ON_DISK, Value, AtLeast(0.7)),
    aim("puts_per_s", "shm", ON_DISK, Ratio, AtLeast(1.5)),
    aim("puts_per_s", "udp", ON_DISK, Ratio, AtLeast(1.5)),
    aim("put_p50", "sim", FABRIC, Value, AtMost(6_000.0)),
    aim("put_p99", "sim", FABRIC, Value, AtMost(7_500.0)),
    aim("leader_p50", "sim", FABRIC, Value, AtMost(3_300.0)),
    aim("failover_p50", "sim", FABRIC, Ratio, AtMost(1.5)),
    aim("failover_p99", "sim", FABRIC, Ratio, AtMost(4.0)),
    aim("failover_p50", "shm", &[], Ratio, AtMost(1.5)),
    aim("failover_p50", "udp", &[], Ratio, AtMost(1.5)),
    aim("failover_worst", "shm", &[], Ratio, AtMost(4.0)),
    aim("failover_worst", "udp", &[], Ratio, AtMost(4.0)),
    aim("put_longest", "shm", &[], Value, AtMost(1_000_000.0)),
    aim("elections", "shm", &[], Value, AtMost(0.0)),
    aim("elections", "udp", &[], Value, AtMost(0.0)),
];

const fn aim(
    metric: &'static str,
    transport: &'static str,
    params: Params,
    of: Of,
    bound: Bound,
) -> Aim {
    Aim {
        metric,
        transport,
        params,
        of,
        bound,
    }
}
