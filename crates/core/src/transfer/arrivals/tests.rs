//! The packets that have arrived, compared with a set.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

proptest! {
    #[test]
    fn arrivals_name_the_packets_that_have_arrived(
        packets in prop::collection::vec(0..1200_u32, 0..900),
    ) {
        let mut arrivals = Arrivals::default();
        let mut model = BTreeSet::new();
        for packet in packets {
            let base = (0..).find(|packet| !model.contains(packet)).unwrap();
            let expected = if model.contains(&packet) {
                Novelty::Duplicate
            } else if packet >= base + MAX_AHEAD {
                Novelty::TooFar
            } else {
                Novelty::New
            };
            prop_assert_eq!(arrivals.find(packet), expected);
            if expected == Novelty::New {
                arrivals.insert(packet);
                model.insert(packet);
            }
            let base = (0..).find(|packet| !model.contains(packet)).unwrap();
            prop_assert_eq!(arrivals.cumulative(), base);
            let (first, second) = arrivals.bitmaps();
            for offset in 0..MAX_AHEAD {
                let said = [Some(first), second].map(|it| it.is_some_and(|it| it.contains(offset)));
                let arrived = model.contains(&(base + offset));
                prop_assert_eq!(said[0] || said[1], arrived);
                prop_assert!(!(said[0] && said[1]), "both CRs report {}", offset);
            }
            // The second CR has only packets that the first cannot report.
            let span = |bits: Bitmap| (0..MAX_AHEAD).filter(move |it| bits.contains(*it));
            let far = second.and_then(|second| span(second).next_back());
            let near = span(first).next();
            prop_assert!(far.is_none_or(|far| far / 64 - near.unwrap_or(0) / 64 >= 4));
        }
    }
}
