//! Pictures on a terminal in memory, and the effects of keys.

use dunlin::{Nexus, Rpc, Shm};
use dunlin_insight::Snapshot;
use ratatui::Terminal;
use ratatui::backend::TestBackend;

use super::*;

/// Two readings of a nexus with two endpoints, a second apart.
fn readings() -> [Vec<Snapshot>; 2] {
    let nexus = Nexus::bind("127.0.0.1:0").unwrap();
    let _endpoints: [Rpc<Shm, ()>; 2] = [(), ()].map(|()| nexus.endpoint(()).unwrap());
    let first = nexus.snapshot().unwrap();
    let mut second = first.clone();
    for endpoint in &mut second.endpoints {
        endpoint.clock_ns += 1_000_000_000;
    }
    [vec![first], vec![second]]
}

fn model() -> Model {
    let [first, second] = readings();
    let mut model = Model::new(first);
    model.take(second);
    model
}

fn picture(model: &Model, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| view::draw(frame, model)).unwrap();
    terminal.backend().to_string()
}

fn press_char(model: &mut Model, key: char) -> Option<Wish> {
    press(model, KeyEvent::from(KeyCode::Char(key)))
}

#[test]
fn all_panes_are_there() {
    let model = model();
    let text = picture(&model, 132, 30);
    for part in [
        "process ",
        "endpoints by index",
        "0 shm",
        "1 shm",
        "busiest sessions by in flight",
        "times of endpoint 0",
        "residence",
        "drops",
        "none",
        "requests 0/s",
        "q quit",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
}

#[test]
fn a_terminal_may_have_any_size() {
    let model = model();
    for (width, height) in [(1, 1), (20, 5), (80, 24), (300, 100)] {
        picture(&model, width, height);
    }
}

/// A terminal of the usual width shows all endpoints and sessions, and no heading is cut.
#[test]
fn columns_that_have_no_room_are_left_out() {
    let snapshot = crate::commands::stats::tests::snapshot();
    let with = format!("{}/1", snapshot.address);
    let model = Model::new(vec![snapshot]);
    for (width, here, not_here) in [
        (
            80,
            &["with", "in flight", "call 99 %"][..],
            &["credits", "stalls/s"][..],
        ),
        (160, &["with", "credits", "remote", "stalls/s"][..], &[][..]),
    ] {
        let text = picture(&model, width, 24);
        assert!(text.contains(&with), "{width}\n{text}");
        for heading in here {
            assert!(text.contains(heading), "{width}: {heading}\n{text}");
        }
        for heading in not_here {
            assert!(!text.contains(&heading[..4]), "{width}: {heading}\n{text}");
        }
    }
}

#[test]
fn keys_choose_sort_hold_and_end() {
    let mut model = model();
    press(&mut model, KeyEvent::from(KeyCode::Down));
    assert_eq!(model.endpoint, 1);
    assert!(picture(&model, 132, 30).contains("times of endpoint 1"));
    press(&mut model, KeyEvent::from(KeyCode::Down));
    assert_eq!(model.endpoint, 1, "there are two");
    press_char(&mut model, 's');
    assert!(picture(&model, 132, 30).contains("endpoints by requests"));
    press(&mut model, KeyEvent::from(KeyCode::Tab));
    press_char(&mut model, 's');
    assert_eq!(model.orders(), ["requests", "rtt"]);
    press_char(&mut model, ' ');
    assert!(picture(&model, 132, 30).contains("HELD"));
    assert_eq!(press_char(&mut model, 'x'), None);
    assert_eq!(press_char(&mut model, 'q'), Some(Wish::Quit));
    let interrupt = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    assert_eq!(press(&mut model, interrupt), Some(Wish::Interrupt));
}

#[test]
fn the_choice_stays_in_the_table_when_an_endpoint_goes() {
    let mut model = model();
    press(&mut model, KeyEvent::from(KeyCode::Down));
    let mut fewer = model.after.clone();
    fewer[0].endpoints.truncate(1);
    model.take(fewer);
    assert_eq!(model.endpoint, 0);
    model.take(Vec::new());
    picture(&model, 80, 24);
}
