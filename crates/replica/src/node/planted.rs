//! Parts of a node with the planted bug that its options name, if any. Called by `node`.

use super::lease::Lease;
use crate::machine::Machine;
use crate::options::Options;

/// Makes the lease of a new node, with its planted bug, if any.
pub(super) fn lease_of(options: &Options) -> Lease {
    #[cfg(feature = "mutants")]
    if options.shows(crate::options::Mutant::LeaseByTicks) {
        let mut lease = Lease::default();
        lease.measure_ticks();
        return lease;
    }
    let _ = options;
    Lease::default()
}

/// Plants a bug of the items, if the options name one.
pub(super) fn plant(machine: &mut Machine, options: &Options) {
    #[cfg(feature = "mutants")]
    match options.mutant {
        Some(crate::options::Mutant::Repeat) => machine.repeat(),
        Some(crate::options::Mutant::ForgottenClients) => machine.forget_clients(),
        Some(crate::options::Mutant::Careless) => machine.compare_nothing(),
        Some(crate::options::Mutant::LastChanges) => machine.show_last_changes(),
        _ => {}
    }
    #[cfg(not(feature = "mutants"))]
    let _ = (machine, options);
}
