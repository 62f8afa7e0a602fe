//! Requests survive the conversion to arguments and back, and answers that break the contract are
//! refused with a reason.

use proptest::prelude::*;

use super::*;

fn request() -> Request {
    let params = [("batch", "3"), ("pattern", "one_way"), ("size", "32")];
    Request {
        experiment: "rate".to_owned(),
        transport: "shm".to_owned(),
        params: params
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into(),
        seconds: 0.25,
        cpus: Some([0, 1]),
        realtime: false,
    }
}

fn error(words: &[&str]) -> String {
    let words: Vec<String> = words.iter().map(|it| (*it).to_owned()).collect();
    format!("{:#}", Request::parse(&words).unwrap_err())
}

#[test]
fn a_request_has_one_word_for_each_of_its_values() {
    let words = "rate transport=shm batch=3 pattern=one_way size=32 seconds=0.25 cpus=0,1 \
                 realtime=false";
    assert_eq!(request().words().join(" "), words);
    let request = Request::parse(&request().words()).unwrap();
    let names: Vec<&String> = request.params.keys().collect();
    assert_eq!(
        names,
        ["batch", "pattern", "size"],
        "the others are not parameters"
    );
}

#[test]
fn words_that_are_not_a_request_are_refused() {
    assert_eq!(error(&[]), "no experiment is named");
    assert_eq!(error(&["rate", "shm"]), "\"shm\" is not name=value");
    assert_eq!(error(&["rate", "size=8", "size=8"]), "size is given twice");
    assert_eq!(error(&["rate", "size=8"]), "transport=... is missing");
    let seconds = error(&["rate", "transport=shm", "seconds=long", "realtime=true"]);
    assert!(seconds.starts_with("seconds: "), "{seconds}");
}

proptest! {
    #[test]
    fn a_request_survives_the_conversion_to_arguments(
        params in prop::collection::btree_map("[a-z_]{9}", "[a-z0-9=.]{0,8}", 0..5),
        seconds in 0.001..1e4,
        realtime: bool,
    ) {
        let request = Request { params, seconds, realtime, cpus: None, ..request() };
        prop_assert_eq!(Request::parse(&request.words()).unwrap(), request);
    }
}

#[test]
fn an_answer_has_figures_or_says_why_not() {
    let text = r#" {"figures":[{"metric":"rpc_per_s","unit":"1/s","value":2e7}],"notes":["a"]} "#;
    let answer = Answer::parse(text).unwrap();
    assert_eq!(answer.find("rpc_per_s").unwrap().1.value, 2e7);
    assert_eq!(answer.find("rtt_p50"), None);
    let no = Answer::parse(r#"{"unsupported":"no udp"}"#).unwrap();
    assert_eq!(no.unsupported.as_deref(), Some("no udp"));
    let text = serde_json::to_string(&answer).unwrap();
    assert_eq!(Answer::parse(&text).unwrap(), answer);
}

#[test]
fn answers_that_break_the_contract_are_refused() {
    let figure = r#"{"metric":"m","unit":"ns","value":1}"#;
    for (output, what) in [
        ("", "printed nothing"),
        ("warming up\n{}", "it printed \"warming up"),
        ("{}", "neither figures"),
        ("[1]", "it printed \"[1]\""),
        (
            r#"{"figures":[{"metric":"m","unit":"ns"}]}"#,
            "missing field `value`",
        ),
        (
            r#"{"figures":[{"metric":"m","unit":"ns","value":"9"}]}"#,
            "invalid type",
        ),
        (
            r#"{"figures":[{"metric":"m","unit":"ns","value":-1}]}"#,
            "its figure m is -1",
        ),
        (r#"{"figure":[]}"#, "unknown field `figure`"),
        (
            &format!(r#"{{"figures":[{figure},{figure}]}}"#),
            "comes twice",
        ),
        (
            &format!(r#"{{"figures":[{figure}],"unsupported":""}}"#),
            "figures and",
        ),
        (&format!("{{\"figures\":[{figure}]}}\n{{}}"), "trailing"),
    ] {
        let error = format!("{:#}", Answer::parse(output).unwrap_err());
        assert!(error.contains(what), "{output}: {error}");
    }
}
