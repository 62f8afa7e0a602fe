//! A table grants exactly its entries, and a table that contradicts itself is refused.

use super::*;

fn grant(user: u32, ports: RangeInclusive<u16>) -> Grant {
    Grant {
        user,
        interface: "link0".to_owned(),
        vlan: 0,
        mode: Mode::Generic,
        addresses: vec![[10, 0, 0, 1].into()],
        ports,
        queues: 1..=2,
        umem_bytes: 1 << 20,
        rules: true,
    }
}

fn claim(address: &str, vlan: u16) -> Claim {
    Claim {
        address: address.parse().unwrap(),
        vlan,
        owner: 7,
    }
}

fn is_link(name: &str) -> bool {
    name == "link0"
}

#[test]
fn a_user_has_what_is_granted_and_nothing_else() {
    let table = Table::new(vec![grant(5, 100..=199), grant(6, 200..=299)]).unwrap();
    let queue = |user, place, frames| table.permits_queue(user, is_link, place, frames);
    let kind = |outcome: io::Result<()>| outcome.unwrap_err().kind();
    assert!(queue(5, (1, Mode::Generic), 256).is_ok());
    assert_eq!(
        kind(queue(5, (1, Mode::Generic), 257)),
        io::ErrorKind::OutOfMemory
    );
    for (user, place) in [
        (7, (1, Mode::Generic)),
        (5, (0, Mode::Generic)),
        (5, (3, Mode::Generic)),
        (5, (1, Mode::Native)),
    ] {
        assert_eq!(kind(queue(user, place, 1)), io::ErrorKind::PermissionDenied);
    }
    let other = table.permits_queue(5, |name| name == "link1", (1, Mode::Generic), 1);
    assert_eq!(kind(other), io::ErrorKind::PermissionDenied);
    let in_mode = |mode, user, queue, of| {
        let granted = table.permits_claim(user, is_link, (queue, mode), &of, 64);
        granted.map(|grant| assert_eq!(grant.user, user))
    };
    let claims = |user, queue, of| in_mode(Mode::Generic, user, queue, of);
    let native = in_mode(Mode::Native, 5, 2, claim("10.0.0.1:100", 0));
    assert_eq!(kind(native), io::ErrorKind::PermissionDenied);
    // Half of the frames of a megabyte.
    for (entries, is_granted) in [(0, false), (128, true), (129, false)] {
        let of = claim("10.0.0.1:100", 0);
        let outcome = table.permits_claim(5, is_link, (2, Mode::Generic), &of, entries);
        assert_eq!(outcome.is_ok(), is_granted, "{entries} entries");
    }
    assert!(claims(5, 2, claim("10.0.0.1:100", 0)).is_ok());
    assert!(claims(5, 2, claim("10.0.0.1:199", 0)).is_ok());
    for (user, queue, of) in [
        (7, 1, claim("10.0.0.1:100", 0)),
        (6, 1, claim("10.0.0.1:100", 0)),
        (5, 0, claim("10.0.0.1:100", 0)),
        (5, 1, claim("10.0.0.2:100", 0)),
        (5, 1, claim("10.0.0.1:200", 0)),
        (5, 1, claim("10.0.0.1:99", 0)),
        (5, 1, claim("10.0.0.1:100", 4)),
        (5, 1, claim("[::ffff:10.0.0.9]:100", 0)),
    ] {
        assert_eq!(
            kind(claims(user, queue, of)),
            io::ErrorKind::PermissionDenied
        );
    }
}

#[test]
fn tables_that_contradict_themselves_are_refused() {
    let said = |grants: Vec<Grant>| Table::new(grants).unwrap_err().to_string();
    let with = |change: fn(&mut Grant)| {
        let mut grant = grant(5, 100..=199);
        change(&mut grant);
        grant
    };
    let first = || grant(6, 150..=160);
    assert!(said(vec![with(|it| it.addresses.clear())]).contains("no address"));
    let reversed = |grant: &mut Grant| grant.ports = RangeInclusive::new(9, 8);
    assert!(said(vec![with(reversed)]).contains("no port"));
    assert!(said(vec![with(|it| it.ports = 0..=8)]).contains("no port"));
    let reversed = |grant: &mut Grant| grant.queues = RangeInclusive::new(2, 1);
    assert!(said(vec![with(reversed)]).contains("no queue"));
    let modes = said(vec![first(), with(|it| it.mode = Mode::Native)]);
    assert!(modes.contains("different modes"), "{modes}");
    let both = said(vec![first(), with(|_| {})]);
    assert!(both.contains("users 6 and 5"), "{both}");
    let changes: [fn(&mut Grant); 5] = [
        |it| it.user = 6,
        |it| it.vlan = 3,
        |it| it.ports = 1..=149,
        |it| it.addresses = vec![[10, 0, 0, 2].into()],
        |it| it.interface = "link1".to_owned(),
    ];
    for change in changes {
        assert!(Table::new(vec![first(), with(change)]).is_ok());
    }
}
