//! The probes of Kubernetes on the page about servers: they are YAML, their commands work, their
//! variables set options, and their times fit each other.

use std::ffi::OsString;
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Duration;

use dunlin::{Server as Builder, Settings};
use dunlin_testkit::wait::until;
use serde_json::Value;

use super::run;

const PAGE: &str = include_str!("../../../../../docs/server.md");

/// Reads YAML from the standard input, and writes it as JSON.
const TO_JSON: &str = "import json, sys, yaml; print(json.dumps(yaml.safe_load(sys.stdin)))";

/// The part of a pod that the page shows.
struct Pod(Value);

impl Pod {
    fn of_page() -> Self {
        let (_, rest) = PAGE.split_once("```yaml\n").unwrap();
        let (yaml, _) = rest.split_once("```").unwrap();
        // Debian's Python, for which it has the package of YAML.
        let mut python = Command::new("/usr/bin/python3")
            .args(["-c", TO_JSON])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = python.stdin.take().unwrap();
        input.write_all(yaml.as_bytes()).unwrap();
        drop(input);
        let output = python.wait_with_output().unwrap();
        assert!(output.status.success(), "python3-yaml is not installed");
        Self(serde_json::from_slice(&output.stdout).unwrap())
    }

    fn container(&self) -> &Value {
        &self.0["spec"]["containers"][0]
    }

    fn probe(&self, name: &str) -> &Value {
        let probe = &self.container()[name];
        assert!(probe.is_object(), "{name}: {probe}");
        probe
    }

    /// The command of a probe.
    fn command(&self, probe: &str) -> Vec<&str> {
        let words = self.probe(probe)["exec"]["command"].as_array().unwrap();
        words.iter().map(|word| word.as_str().unwrap()).collect()
    }

    fn variables(&self) -> Vec<(OsString, OsString)> {
        let variables = self.container()["env"].as_array().unwrap().iter();
        let text = |it: &Value, key| OsString::from(it[key].as_str().unwrap());
        let pairs = variables.map(|it| (text(it, "name"), text(it, "value")));
        pairs.collect()
    }
}

/// The value of an option with these variables, in seconds.
fn seconds(settings: &Settings, key: &str) -> u64 {
    let value = settings.get(key).unwrap().value;
    let number = value.trim_matches('"').strip_suffix(" s");
    number.unwrap_or_else(|| panic!("{value}")).parse().unwrap()
}

#[test]
fn the_variables_on_the_page_set_options_that_fit_its_times() {
    let pod = Pod::of_page();
    let settings = Settings::default().with_variables(pod.variables()).unwrap();
    let seconds = |key| seconds(&settings, key);
    let drain = seconds("server.drain_delay") + seconds("server.drain_timeout");
    let number = |of: &Value, key: &str| of[key].as_u64().unwrap();
    assert!(number(&pod.0["spec"], "terminationGracePeriodSeconds") > drain);
    let live = pod.probe("livenessProbe");
    assert!(number(live, "failureThreshold") * number(live, "periodSeconds") > drain);
    let ready = pod.probe("readinessProbe");
    let noticed = number(ready, "failureThreshold") * number(ready, "periodSeconds");
    assert!(noticed < seconds("server.drain_delay"));
    // The command gives up after a second. Kubernetes must wait for longer, so that it gets the
    // exit code of the command.
    for probe in [live, ready] {
        assert!(number(probe, "timeoutSeconds") > 1);
    }
}

#[test]
fn the_commands_of_the_probes_answer_for_a_server_that_serves_and_for_one_that_drains() {
    let pod = Pod::of_page();
    let server = Builder::builder().drain_delay(Duration::from_secs(3));
    let server = server.poll(|_| (), |rpc| rpc.add_service("Count"));
    let server = server.start("127.0.0.1:0").unwrap();
    let address = server.address().to_string();
    let code = |probe: &str| {
        let command = pod.command(probe);
        let (program, args) = command.split_first().unwrap();
        assert_eq!(*program, "dunlin");
        assert!(args.contains(&"127.0.0.1:31850"), "{args:?}");
        let here = |word: &&str| match *word {
            "127.0.0.1:31850" => address.clone(),
            word => word.to_owned(),
        };
        let args: Vec<String> = args.iter().map(here).collect();
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        run(&args).status.code()
    };
    let probes = ["readinessProbe", "livenessProbe"];
    assert_eq!(probes.map(code), [Some(0); 2]);
    let drain = std::thread::spawn(move || server.drain());
    until(|| probes.map(code) == [Some(1); 2]);
    drain.join().unwrap();
}
