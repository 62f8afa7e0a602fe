//! A connection before its client has authenticated. It accepts a `set` with any key whose value is
//! a name and a password, and refuses everything else.

use crate::connection::{Connection, Phase};
use crate::limits::MAX_TOKEN;
use crate::number;
use crate::render::line as say;
use crate::server::Server;
use crate::words::{Words, visible};

const UNKNOWN: &str = "CLIENT_ERROR unauthenticated";

impl Connection {
    /// Reads a line, of which only the length of its value matters.
    pub(super) fn read_credentials(&mut self, end: usize, next: usize) {
        let words = Words::new(visible(&self.input.bytes()[..end]));
        let is_set = words.len() >= 5 && words.at(0) == b"set";
        let len: Option<u32> = number::read(words.at(4));
        match len.filter(|_| is_set) {
            Some(len) if len as usize <= MAX_TOKEN => {
                let need = next + len as usize + 2;
                self.phase = Phase::Value { need };
            }
            Some(_) => {
                say(UNKNOWN, self.output.end());
                self.finish();
            }
            None => {
                say(UNKNOWN, self.output.end());
                self.input.take(next);
            }
        }
    }

    /// Lets the client in if the value, which begins at `from`, names a user with its password.
    pub(super) fn check_credentials(&mut self, from: usize, need: usize, server: &mut impl Server) {
        let value = &self.input.bytes()[from..need];
        let text = match value.strip_suffix(b"\r\n") {
            None => "CLIENT_ERROR bad command line termination",
            Some(value) => {
                let words = Words::new(visible(value));
                let users = self.users.as_ref();
                let is_known = users.is_some_and(|users| users.knows(words.at(0), words.at(1)));
                if words.len() < 2 {
                    "CLIENT_ERROR bad authentication token format"
                } else {
                    server.on_authentication(is_known);
                    if is_known {
                        "STORED"
                    } else {
                        "CLIENT_ERROR authentication failure"
                    }
                }
            }
        };
        if text == "STORED" {
            self.users = None;
        }
        say(text, self.output.end());
        self.input.take(need);
    }
}
