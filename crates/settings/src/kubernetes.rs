//! Variables that Kubernetes sets in each container for each service of its namespace. A service
//! named `dunlin` sets `DUNLIN_PORT=tcp://10.0.0.1:31850` and others, which are not options of
//! ours. A service named `dunlin-udp` sets `DUNLIN_UDP_PORT`, which is the name of an option.
//!
//! Called by `settings.rs`.

/// The protocols of a service's ports.
const PROTOCOLS: [&str; 3] = ["TCP", "UDP", "SCTP"];

/// Whether Kubernetes sets this variable: `DUNLIN_…_PORT` with a URL, `…_SERVICE_HOST`,
/// `…_SERVICE_PORT`, perhaps with the name of a port, and `…_PORT_31850_TCP`, perhaps with `_ADDR`,
/// `_PORT` or `_PROTO`. A mistake in the name of an option, such as `DUNLIN_UDP_PAK`, is not one of
/// these.
pub(super) fn is_of_service(name: &str, value: &str) -> bool {
    let urls = ["tcp://", "udp://", "sctp://"];
    urls.iter().any(|url| value.starts_with(url))
        || name.ends_with("_SERVICE_HOST")
        || has_words(name, &["SERVICE", "PORT"])
        || PROTOCOLS.iter().any(|protocol| is_of_port(name, protocol))
}

/// One line of warning about the variables that were ignored.
pub(super) fn warning(mut names: Vec<String>) -> Option<String> {
    names.sort_unstable();
    let (first, others) = names.split_first()?;
    let others = match others.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    Some(format!(
        "warning: {first}{others} ignored: Kubernetes sets such variables for a service whose name \
         begins with `dunlin`; `enableServiceLinks: false` in the pod keeps them away"
    ))
}

/// Whether these words follow each other in the name.
fn has_words(name: &str, words: &[&str]) -> bool {
    let all: Vec<&str> = name.split('_').collect();
    all.windows(words.len()).any(|some| some == words)
}

fn is_of_port(name: &str, protocol: &str) -> bool {
    let all: Vec<&str> = name.split('_').collect();
    let is_port = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
    all.windows(3)
        .any(|some| some[0] == "PORT" && is_port(some[1]) && some[2] == protocol)
}
