//! Options that contradict each other are refused before an endpoint exists.

use std::time::Duration;

use dunlin::{ConfigError, EndpointError, Nexus, Shm};

#[test]
fn an_endpoint_that_would_forget_responses_too_early_is_refused() {
    let nexus = Nexus::bind("127.0.0.1:0").unwrap();
    let hold = Duration::from_millis(50).into();
    let refused = nexus
        .endpoint_builder::<Shm>()
        .config(|config| config.response_hold = hold)
        .build(());
    let least = Duration::from_millis(300).into();
    assert!(
        matches!(
            refused,
            Err(EndpointError::Config(error)) if error == ConfigError::ResponseHold { hold, least }
        ),
        "{refused:?}"
    );
}
