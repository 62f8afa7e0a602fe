//! Keys of a scenario file that have no effect because another key is missing. A file that sets
//! such a key is refused, because its author expects an effect.

use dunlin_sim::scenario::{Scheme, Wrong};

use super::load::{LoadSection, PartnersText, hosts};
use super::{BaseRtt, Endpoint, File, Network, Switch};

impl File {
    /// # Errors
    /// The first key that differs from its default but has no effect.
    pub(super) fn refuse_idle_keys(&self) -> Result<(), Wrong> {
        self.refuse_idle_network()?;
        self.refuse_idle_faults()?;
        self.refuse_idle_endpoint()?;
        for (index, load) in self.load.iter().enumerate() {
            load.refuse_idle(index, self.network.hosts)?;
        }
        Ok(())
    }

    /// Refuses keys that affect only sessions with a congestion control scheme that no load has.
    ///
    /// # Errors
    /// The first such key.
    pub(super) fn refuse_keys_of_other_schemes(&self) -> Result<(), Wrong> {
        let schemes = || {
            let loads = self.load.iter();
            loads.map(|load| load.cc.as_ref().unwrap_or(&self.endpoint.cc).as_str())
        };
        let marks = self.switch.mark_from_kb.is_finite();
        if marks && schemes().all(|cc| cc != Scheme::Dcqcn.name()) {
            let what = "has no effect, because only dcqcn looks at marks, and no load has it";
            return Err(Wrong::new("switch.mark_from_kb", what));
        }
        // Under any scheme, a server limits large responses if it knows the round trip.
        let large = |load: &LoadSection| load.response_bytes > self.network.packet_bytes;
        let is_read = schemes().any(|cc| cc != Scheme::None.name()) || self.load.iter().any(large);
        if self.network.base_rtt == BaseRtt::Measured && !is_read {
            let what = "has no effect, because no load has congestion control or responses of \
                        several packets";
            return Err(Wrong::new("network.base_rtt", what));
        }
        Ok(())
    }

    fn refuse_idle_network(&self) -> Result<(), Wrong> {
        let (network, usual) = (&self.network, Network::default());
        let one_rack = network.racks == 1;
        for (key, is_set) in [
            ("neighbours", network.neighbours != usual.neighbours),
            ("spines", network.spines != usual.spines),
            ("uplinks", network.uplinks != usual.uplinks),
            (
                "uplink_gbps",
                differ(network.uplink_gbps, usual.uplink_gbps),
            ),
        ] {
            idle(
                &format!("network.{key}"),
                one_rack && is_set,
                "network.racks",
            )?;
        }
        self.refuse_idle_marks()
    }

    fn refuse_idle_marks(&self) -> Result<(), Wrong> {
        let (switch, usual) = (&self.switch, Switch::default());
        let never_marks = switch.mark_from_kb.is_infinite();
        // The share of marked frames would rise over an infinite range of queue lengths, so it
        // would stay 0.
        let never_rises = switch.mark_all_kb.is_infinite();
        idle(
            "switch.mark_from_kb",
            !never_marks && never_rises,
            "switch.mark_all_kb",
        )?;
        let has_percent = differ(switch.mark_percent, usual.mark_percent);
        if has_percent && !never_marks && !differ(switch.mark_from_kb, switch.mark_all_kb) {
            let what = "has no effect, because switch.mark_from_kb is as high as \
                        switch.mark_all_kb; leave it out, or lower the former";
            return Err(Wrong::new("switch.mark_percent", what));
        }
        for (key, is_set) in [
            ("mark_all_kb", differ(switch.mark_all_kb, usual.mark_all_kb)),
            ("mark_percent", has_percent),
        ] {
            idle(
                &format!("switch.{key}"),
                never_marks && is_set,
                "switch.mark_from_kb",
            )?;
        }
        Ok(())
    }

    fn refuse_idle_faults(&self) -> Result<(), Wrong> {
        let faults = &self.faults;
        let late = faults.reorder_ppm != 0 || faults.duplicate_ppm != 0;
        for (key, is_set, needed, is_there) in [
            (
                "burst_ppm",
                faults.burst_ppm != 0,
                "burst_frames",
                faults.burst_frames != 0,
            ),
            (
                "burst_frames",
                faults.burst_frames != 0,
                "burst_ppm",
                faults.burst_ppm != 0,
            ),
            (
                "reorder_ppm",
                faults.reorder_ppm != 0,
                "reorder_us",
                faults.reorder_us != 0,
            ),
            ("reorder_us", faults.reorder_us != 0, "reorder_ppm", late),
            (
                "spike_ppm",
                faults.spike_ppm != 0,
                "spike_us",
                faults.spike_us != 0,
            ),
            (
                "spike_us",
                faults.spike_us != 0,
                "spike_ppm",
                faults.spike_ppm != 0,
            ),
        ] {
            let needed = format!("faults.{needed}");
            idle(&format!("faults.{key}"), is_set && !is_there, &needed)?;
        }
        Ok(())
    }

    /// Refuses a key of `[endpoint]` that every load overrides, because it has no effect.
    fn refuse_idle_endpoint(&self) -> Result<(), Wrong> {
        let (endpoint, usual) = (&self.endpoint, Endpoint::default());
        let all =
            |own: fn(&LoadSection) -> bool| !self.load.is_empty() && self.load.iter().all(own);
        for (key, is_set, every_load) in [
            ("cc", endpoint.cc != usual.cc, all(|load| load.cc.is_some())),
            (
                "credits",
                endpoint.credits != usual.credits,
                all(|load| load.credits.is_some()),
            ),
            (
                "window",
                endpoint.window != usual.window,
                all(|load| load.window.is_some()),
            ),
        ] {
            if is_set && every_load {
                let what = "has no effect, because every load has its own; leave one of them out";
                return Err(Wrong::new(&format!("endpoint.{key}"), what));
            }
        }
        Ok(())
    }
}

impl LoadSection {
    fn refuse_idle(&self, index: usize, all: usize) -> Result<(), Wrong> {
        let servers = hosts(&self.servers, all).map(|hosts| hosts.len() * self.endpoints);
        if self.partners == PartnersText::Fixed && servers == Some(1) {
            let what = "has no effect, because there is only one server; leave it out";
            return Err(Wrong::new(&format!("load.{index}.partners"), what));
        }
        for (key, is_set) in [
            ("batch", self.batch.is_some()),
            ("think_us", self.think_us.is_some()),
        ] {
            if is_set && self.rate_per_s.is_some() {
                let what = "has no effect with rate_per_s, which alone decides when requests \
                            arrive; leave one of them out";
                return Err(Wrong::new(&format!("load.{index}.{key}"), what));
            }
        }
        Ok(())
    }
}

/// # Errors
/// The key has no effect.
fn idle(key: &str, is_idle: bool, needed: &str) -> Result<(), Wrong> {
    match is_idle {
        true => {
            let what = format!("has no effect without {needed}; set that too, or leave this out");
            Err(Wrong::new(key, what))
        }
        false => Ok(()),
    }
}

/// Whether the values differ at all. Both were written or are defaults, so no computation has
/// rounded them.
fn differ(value: f64, usual: f64) -> bool {
    value.to_bits() != usual.to_bits()
}
