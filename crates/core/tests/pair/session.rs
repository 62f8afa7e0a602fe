//! Sessions: their beginning and end, and peers that misuse them.

mod challenges;
mod hostile;
mod sessions;
