//! Devices of `net_af_xdp`, the driver of DPDK for AF_XDP, at the ends of a link of the kernel.

use dunlin_testkit::network::Host;

/// A device at an end of the link, which gets the name `xskNUMBER` and loses its addresses, so that
/// the kernel has none there. `mtu`: of the link; `options`: further ones of the device.
pub(crate) fn device(host: &Host, number: u8, mtu: u16, options: &str) -> String {
    let name = format!("xsk{number}");
    for command in [
        "addr flush dev link0".to_owned(),
        "link set link0 down".to_owned(),
        format!("link set link0 name {name} mtu {mtu} addrgenmode none"),
        format!("link set {name} up"),
    ] {
        host.ip(&command).unwrap();
    }
    let arguments = super::pair::ARGUMENTS;
    format!("net_af_xdp{number},iface={name};ip=10.88.0.{number}/24{options};{arguments}")
}
