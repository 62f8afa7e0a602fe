//! Rates, windows below one packet, and packets that wait for their departure.

mod below_one;
mod declared;
mod paced;
