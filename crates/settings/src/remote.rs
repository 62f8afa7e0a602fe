//! The transport of an `auto` endpoint for peers of other hosts, as the option `auto.remote` names
//! it: `xdp[:INTERFACE[:QUEUE]]` or `dpdk[:DEVICE;ip=ADDRESS/BITS]`, in the form of the flag
//! `--transport`.
//!
//! A program without the transport's feature accepts the option, but its endpoints do not open; the
//! error names the feature. Called by `apply` and `text`.

use dunlin_transport::auto::RemoteOptions;

use crate::Settings;
use crate::text::{fault_of_device, is_interface};

/// The highest number of a queue in a name.
const MOST_QUEUE: u32 = 4095;

/// A name, in parts. Parts that are missing come from the options of the transport.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Named<'a> {
    Xdp {
        interface: Option<&'a str>,
        queue: Option<u32>,
    },
    Dpdk(Option<&'a str>),
}

/// The error if this names no transport.
pub(super) fn fault(text: &str) -> Option<String> {
    read(text).err()
}

fn read(text: &str) -> Result<Named<'_>, String> {
    let (name, place) = match text.split_once(':') {
        None => (text, None),
        Some((name, place)) => (name, Some(place)),
    };
    match (name, place) {
        ("xdp", None) => Ok(Named::Xdp {
            interface: None,
            queue: None,
        }),
        ("xdp", Some(place)) => {
            let (interface, queue) = match place.split_once(':') {
                None => (place, None),
                Some((interface, queue)) => (interface, Some(queue)),
            };
            if !is_interface(interface) {
                return Err("xdp:INTERFACE[:QUEUE] lacks the name of an interface".to_owned());
            }
            let number = |queue: &str| queue.parse().ok().filter(|queue| *queue <= MOST_QUEUE);
            let wrong = || format!("a queue has a number from 0 to {MOST_QUEUE}");
            let queue = queue.map(|queue| number(queue).ok_or_else(wrong));
            Ok(Named::Xdp {
                interface: Some(interface),
                queue: queue.transpose()?,
            })
        }
        ("dpdk", None) => Ok(Named::Dpdk(None)),
        ("dpdk", Some(device)) => match fault_of_device(device) {
            None => Ok(Named::Dpdk(Some(device))),
            Some(fault) => Err(fault),
        },
        _ => Err("it is neither udp, nor xdp, nor dpdk".to_owned()),
    }
}

impl Settings {
    /// The transport of this name, with the options that are set for it.
    pub(super) fn remote(&self, text: &str) -> Option<RemoteOptions> {
        // The option was checked when it was set.
        match read(text).ok()? {
            Named::Xdp { interface, queue } => Some(self.remote_xdp(interface, queue)),
            Named::Dpdk(device) => Some(self.remote_dpdk(device)),
        }
    }

    #[cfg(feature = "xdp")]
    fn remote_xdp(&self, interface: Option<&str>, queue: Option<u32>) -> RemoteOptions {
        use crate::apply::Configurable;

        let mut options = dunlin_xdp::Options::default();
        dunlin_xdp::Xdp::configure(self, &mut options);
        if let Some(interface) = interface {
            interface.clone_into(&mut options.interface);
        }
        options.queue = queue.unwrap_or(options.queue);
        RemoteOptions::new(options)
    }

    #[cfg(feature = "dpdk")]
    fn remote_dpdk(&self, device: Option<&str>) -> RemoteOptions {
        use crate::apply::Configurable;

        let mut options = dunlin_dpdk::Options::default();
        dunlin_dpdk::Dpdk::configure(self, &mut options);
        if let Some(device) = device {
            device.clone_into(&mut options.device);
        }
        RemoteOptions::new(options)
    }

    #[cfg(not(feature = "xdp"))]
    #[expect(clippy::unused_self, reason = "the feature's function uses it")]
    fn remote_xdp(&self, _interface: Option<&str>, _queue: Option<u32>) -> RemoteOptions {
        RemoteOptions::new(missing::Missing("xdp"))
    }

    #[cfg(not(feature = "dpdk"))]
    #[expect(clippy::unused_self, reason = "the feature's function uses it")]
    fn remote_dpdk(&self, _device: Option<&str>) -> RemoteOptions {
        RemoteOptions::new(missing::Missing("dpdk"))
    }
}

#[cfg(not(all(feature = "xdp", feature = "dpdk")))]
mod missing {
    use std::io;

    use dunlin_transport::auto::{OpenRemote, OpenedRemote};
    use dunlin_transport::udp;

    /// A transport whose feature the program lacks.
    #[derive(Debug)]
    pub(super) struct Missing(pub(super) &'static str);

    impl OpenRemote for Missing {
        fn open(&self, _: udp::Options) -> io::Result<OpenedRemote> {
            let name = self.0;
            let why = format!("auto.remote: this program lacks the feature `{name}` of dunlin");
            Err(io::Error::new(io::ErrorKind::Unsupported, why))
        }
    }
}

#[cfg(test)]
mod tests;
