//! A watch over an interface that a test gives other programs.

use std::sync::atomic::AtomicU32;

use super::*;

/// An interface with this program, or with none if it is 0, which counts questions.
#[derive(Clone, Debug, Default)]
struct Played {
    program: Arc<AtomicU32>,
    questions: Arc<AtomicU32>,
}

impl Roads for Played {
    fn road(&mut self, _: IpAddr) -> io::Result<Option<Road>> {
        Ok(None)
    }

    fn mtu(&mut self, _: IpAddr) -> io::Result<Option<u32>> {
        Ok(None)
    }

    fn change(&mut self) -> Option<Change> {
        None
    }
}

impl Programs for Played {
    fn program(&mut self, _: u32) -> Option<Option<u32>> {
        self.questions.fetch_add(1, Ordering::Relaxed);
        let program = self.program.load(Ordering::Relaxed);
        // The kernel does not answer about this one.
        (program != 99).then(|| (program != 0).then_some(program))
    }
}

fn watched(program: u32) -> (Watched<Played>, Played, Doubt) {
    let (played, doubt) = (Played::default(), Doubt::default());
    played.program.store(program, Ordering::Relaxed);
    (
        Watched::new(played.clone(), 3, doubt.clone()),
        played,
        doubt,
    )
}

#[test]
fn a_program_that_is_gone_or_replaced_is_reported_once() {
    for other in [0, 8] {
        let (mut watch, played, doubt) = watched(7);
        played.program.store(other, Ordering::Relaxed);
        assert_eq!(watch.change(), None, "nothing came through the socket");
        doubt.raise();
        assert_eq!(watch.change(), Some(Change::Unsteered));
        doubt.raise();
        assert!((0..1000).all(|_| watch.change().is_none()));
    }
}

#[test]
fn a_program_that_is_missing_from_the_start_is_reported_once() {
    let (mut watch, _, doubt) = watched(0);
    assert_eq!(watch.change(), Some(Change::Unsteered));
    doubt.raise();
    assert!((0..1000).all(|_| watch.change().is_none()));
}

#[test]
fn questions_become_rare_while_the_program_is_there() {
    let (mut watch, played, doubt) = watched(7);
    for _ in 0..10 * MOST {
        doubt.raise();
        assert_eq!(watch.change(), None);
    }
    let asked = played.questions.load(Ordering::Relaxed);
    assert!((10..20).contains(&asked), "{asked}");
    // A doubt is not forgotten meanwhile.
    played.program.store(0, Ordering::Relaxed);
    let looks = (0..).find(|_| watch.change().is_some());
    assert!(looks.unwrap() <= MOST);
}

#[test]
fn a_missing_answer_proves_nothing() {
    let (mut watch, played, doubt) = watched(7);
    played.program.store(99, Ordering::Relaxed);
    for _ in 0..10 * MOST {
        doubt.raise();
        assert_eq!(watch.change(), None);
    }
    let (mut watch, played, doubt) = watched(99);
    played.program.store(7, Ordering::Relaxed);
    doubt.raise();
    assert_eq!(watch.change(), None, "it was not known which one is ours");
}
