//! The table has a row for every field of every option struct, and each row sets only its field.
//! The test finds the fields in the `Debug` output of the structs, including private fields and
//! fields of inner structs. A new field without a row fails the test.

use std::collections::BTreeMap;
use std::fmt::Debug;

use dunlin_dpdk::{AutoDpdk, Dpdk};
use dunlin_nexus::{EndpointBuilder, Nexus};
use dunlin_transport::auto::Auto;
use dunlin_xdp::{AutoXdp, Xdp};

use crate::setting::{Setting, Unit};
use crate::value::Value;
use crate::{Settings, table};

/// Fields by the names of their rows, each with its `Debug` output.
type Fields = BTreeMap<String, String>;

/// Fields that are not options for an operator, with the reason.
const NO_OPTIONS: [&str; 3] = [
    // The index of the endpoint in its nexus, which only the program can choose.
    "builder.index",
    // The names of a program's own figures.
    "nexus.own",
    // A planted bug, for tests of the simulator's checkers.
    "endpoint.mutant",
];

/// Fields whose names differ from the names of their rows.
const RENAMED: [(&str, &str); 16] = [
    ("builder.config.", "endpoint."),
    ("builder.idle", "endpoint.idle"),
    ("builder.transport.remote", "auto.remote"),
    ("builder.transport.shm.", "shm."),
    ("builder.transport.udp.", "udp."),
    ("past_kernel.transport.", "xdp."),
    ("without_kernel.transport.", "dpdk."),
    ("nexus.plane.", "nexus."),
    ("nexus.insight_", "insight."),
    ("connect.session.", "session."),
    ("connect.", "session."),
    ("channel.options.", "channel."),
    ("server.limits.", "server."),
    ("server.times.", "server.drain_"),
    ("_bytes", ""),
    ("_us", ""),
];

/// Rows that keep the unit at the end of the field's name.
const KEEPS_ITS_END: [&str; 5] = [
    "endpoint.pool_bytes",
    "replica.append_bytes",
    "replica.kept_bytes",
    "replica.slice_bytes",
    "replica.piece_bytes",
];

/// Reads all fields of a struct from its `Debug` output. A field takes one line; an `Option` or an
/// enum variant with fields takes several. The state of a running nexus is left out: it changes by
/// itself.
fn fields(name: &str, value: &impl Debug) -> Fields {
    let printed = format!("{value:#?}");
    let mut fields = Fields::new();
    let mut path = vec![name.to_owned()];
    let mut lines = printed.lines().skip(1);
    while let Some(line) = lines.next() {
        let depth = (line.len() - line.trim_start().len()) / 4;
        let Some((field, value)) = line.trim().split_once(": ") else {
            continue;
        };
        path.truncate(depth);
        path.push(field.to_owned());
        let is_struct = value.ends_with(" {") && value != "Adaptive {";
        if is_struct {
            continue;
        }
        let mut value = value.to_owned();
        if value.ends_with(['{', '(']) {
            // The value ends at the first line that is indented like the field's first line.
            let end = " ".repeat(depth * 4);
            for line in lines.by_ref() {
                value += line.trim();
                if line.starts_with(&end) && !line[end.len()..].starts_with(' ') {
                    break;
                }
            }
        }
        fields.insert(row_name(&path.join(".")), value);
    }
    fields.retain(|name, _| !name.contains("nexus.inner."));
    fields
}

fn row_name(path: &str) -> String {
    RENAMED.iter().fold(path.to_owned(), |name, (from, to)| {
        let is_end = from.starts_with('_');
        if is_end && name.ends_with(from) && !KEEPS_ITS_END.contains(&&*name) {
            return name.strip_suffix(from).unwrap_or_default().to_owned();
        }
        match name.strip_prefix(from) {
            Some(rest) if !is_end => format!("{to}{rest}"),
            _ => name,
        }
    })
}

/// All fields of the builders after settings were applied.
fn told(settings: &Settings, nexus: &Nexus) -> Fields {
    let builder: EndpointBuilder<Auto> = settings.endpoint(nexus);
    let mut all = fields("builder", &builder);
    let past_kernel: EndpointBuilder<Xdp> = settings.endpoint(nexus);
    let own = |name: &str| name.starts_with("xdp.") && !name.starts_with("xdp.udp.");
    let past_kernel = fields("past_kernel", &past_kernel);
    // `auto` over `xdp` has the options of both.
    let of_both: EndpointBuilder<AutoXdp> = settings.endpoint(nexus);
    for (name, value) in fields("both", &of_both) {
        if let Some(option) = name.strip_prefix("both.transport.xdp.") {
            assert_eq!(
                past_kernel.get(&format!("xdp.{option}")),
                Some(&value),
                "{name}"
            );
        } else if let Some(option) = name.strip_prefix("both.transport.shm.") {
            assert_eq!(all.get(&format!("shm.{option}")), Some(&value), "{name}");
        }
    }
    let past_kernel = past_kernel.into_iter();
    all.extend(past_kernel.filter(|(name, _)| own(name)));
    let without_kernel: EndpointBuilder<Dpdk> = settings.endpoint(nexus);
    let own = |name: &str| name.starts_with("dpdk.") && !name.starts_with("dpdk.udp.");
    let without_kernel = fields("without_kernel", &without_kernel).into_iter();
    all.extend(without_kernel.filter(|(name, _)| own(name)));
    all.extend(fields("nexus", &settings.nexus()));
    all.extend(fields("connect", &settings.connect_options()));
    all.extend(fields("channel", &settings.hub()));
    all.extend(fields("server", &settings.server()));
    all.extend(fields("kv", &settings.kv()));
    all.extend(fields("sequencer", &settings.sequencer()));
    all.extend(fields("replica", &settings.replica()));
    all.insert("nexus.listen".to_owned(), settings.listen());
    all.retain(|name, _| !NO_OPTIONS.contains(&&**name));
    all
}

/// A value of the row that is not its default.
fn other_value(setting: &Setting) -> String {
    let default = setting.default_value();
    let candidates = match setting.unit {
        Unit::Switch => vec![Value::Switch(true), Value::Switch(false)],
        Unit::Ip => vec![Value::Ip([10, 1, 2, 3].into())],
        Unit::Networks => vec![Value::Text("10.1.0.0/16".to_owned())],
        Unit::Address => vec![Value::Text("localhost:7".to_owned())],
        Unit::Interface => vec![Value::Text("eth7".to_owned())],
        Unit::Remote => vec![Value::Text("xdp:eth7".to_owned())],
        Unit::Path => vec![Value::Text("/run/it.sock".to_owned())],
        Unit::Device => vec![Value::Text("net_null0;ip=10.0.0.2/24".to_owned())],
        Unit::Word => setting
            .words
            .iter()
            .rev()
            .map(|word| Value::Word(word))
            .collect(),
        _ => [setting.numbers.least, setting.numbers.most]
            .map(Value::Number)
            .into(),
    };
    let other = candidates.into_iter().find(|value| *value != default);
    setting.show(&other.expect("every option can have two values"))
}

#[test]
fn every_field_has_a_row_and_every_row_a_field() {
    let settings = Settings::default();
    let nexus = Nexus::bind("127.0.0.1:0").unwrap();
    let told = told(&settings, &nexus);
    let fields: Vec<&str> = told.keys().map(String::as_str).collect();
    let mut rows: Vec<&str> = table::all().map(Setting::name).collect();
    rows.sort_unstable();
    assert_eq!(rows, fields);
    let mut variables: Vec<String> = table::all().map(Setting::variable).collect();
    variables.sort_unstable();
    variables.dedup();
    assert_eq!(variables.len(), rows.len(), "two options have one variable");
}

#[test]
fn rows_of_features_have_the_defaults_of_their_builders() {
    let settings = Settings::default();
    let nexus = Nexus::bind("127.0.0.1:0").unwrap();
    let own: EndpointBuilder<Xdp> = settings.endpoint(&nexus);
    let other: EndpointBuilder<Xdp> = nexus.endpoint_builder();
    assert_eq!(fields("xdp", &own), fields("xdp", &other));
    let own: EndpointBuilder<AutoXdp> = settings.endpoint(&nexus);
    let other: EndpointBuilder<AutoXdp> = nexus.endpoint_builder();
    assert_eq!(fields("auto", &own), fields("auto", &other));
    let own: EndpointBuilder<AutoDpdk> = settings.endpoint(&nexus);
    let other: EndpointBuilder<AutoDpdk> = nexus.endpoint_builder();
    assert_eq!(fields("auto", &own), fields("auto", &other));
    let own: EndpointBuilder<Dpdk> = settings.endpoint(&nexus);
    let other: EndpointBuilder<Dpdk> = nexus.endpoint_builder();
    assert_eq!(fields("dpdk", &own), fields("dpdk", &other));
    let [hub, other] = [settings.hub(), dunlin_hub::Hub::builder()];
    assert_eq!(fields("channel", &hub), fields("channel", &other));
    let [server, other] = [settings.server(), dunlin_server::Server::builder()];
    assert_eq!(fields("server", &server), fields("server", &other));
}

#[test]
fn a_row_sets_its_field_and_no_other() {
    let nexus = Nexus::bind("127.0.0.1:0").unwrap();
    let before = told(&Settings::default(), &nexus);
    for setting in table::all() {
        let value = other_value(setting);
        let settings = Settings::default().with(setting.name, &value).unwrap();
        let after = told(&settings, &nexus);
        let differs = |name: &&String| before.get(*name) != after.get(*name);
        let changed: Vec<&String> = before.keys().filter(differs).collect();
        assert_eq!(changed, [setting.name], "{} = {value}", setting.name);
        assert_eq!(settings.get(setting.name).unwrap().value, value);
    }
}

#[test]
fn a_field_takes_each_word_of_its_row() {
    let nexus = Nexus::bind("127.0.0.1:0").unwrap();
    for setting in table::all() {
        for word in setting.words {
            let settings = Settings::default().with(setting.name, word).unwrap();
            // A word that does not fit its field fails an assertion here.
            drop(told(&settings, &nexus));
        }
    }
}

#[test]
fn a_field_holds_the_ends_of_its_range() {
    let nexus = Nexus::bind("127.0.0.1:0").unwrap();
    for setting in table::all() {
        for number in [setting.numbers.least, setting.numbers.most] {
            if setting.unit().is_empty() {
                continue;
            }
            let text = setting.show(&Value::Number(number));
            let settings = Settings::default().with(setting.name, &text).unwrap();
            // A value that does not fit its field fails an assertion here.
            drop(told(&settings, &nexus));
        }
    }
}

#[test]
fn a_first_pause_above_the_longest_is_refused() {
    let paused = |first: &str| {
        Settings::default()
            .with("channel.pause.first", first)
            .unwrap()
    };
    let refused = paused("200 ms").check().unwrap_err().to_string();
    assert_eq!(
        refused,
        "the program: `channel.pause.first` = 200 ms (the program) is more than \
         `channel.pause.most` = 100 ms (default); lower the first or raise the second"
    );
    assert!(paused("100 ms").check().is_ok());
}
