//! A put through all nodes.

use super::*;

#[test]
fn a_put_is_applied_by_all_nodes() {
    let mut nodes = [1, 2, 3].map(Node::new);
    nodes[0].raft.campaign().unwrap();
    settle(&mut nodes).unwrap();
    let mut entry = vec![7; HEAD + KEY + VALUE];
    entry[HEAD..HEAD + KEY].fill(9);
    nodes[0].raft.propose(Vec::new(), entry).unwrap();
    settle(&mut nodes).unwrap();
    for node in &nodes {
        assert_eq!(node.items.get(&vec![9; KEY]), Some(&vec![7; VALUE]));
    }
}
