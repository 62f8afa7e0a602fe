//! Channels that ask for names while look-ups run.

use super::*;

#[test]
fn a_name_has_one_look_up_at_a_time_and_it_serves_only_channels_that_asked_before_it_began() {
    let (mut names, [one, other]) = (Names::default(), ["a:1", "b:1"].map(Arc::from));
    assert!(names.on_ask(&one, (1, 0)));
    assert!(names.on_ask(&other, (1, 1)), "another name does not wait");
    assert!(!names.on_ask(&one, (2, 0)));
    assert!(!names.on_ask(&one, (3, 0)));
    assert_eq!(names.on_end(&one), (vec![(1, 0)], true));
    assert!(!names.on_ask(&one, (1, 0)), "the second one is under way");
    assert_eq!(names.on_end(&one), (vec![(2, 0), (3, 0)], true));
    assert_eq!(names.on_end(&one), (vec![(1, 0)], false));
    assert!(names.on_ask(&one, (1, 0)));
    assert_eq!(names.on_end(&other), (vec![(1, 1)], false));
    assert_eq!(names.on_end("c:1"), (vec![], false));
}
