//! Finds stop strings in growing text in time linear in the text.

use std::collections::HashMap;

/// An Aho-Corasick automaton over the bytes of the stop strings.
///
/// At the border of a character its state is the longest end of the text with which some stop string begins: what has to
/// be held back.
#[derive(Debug)]
pub(super) struct StopMatcher {
    nodes: Vec<Node>,
    edges: HashMap<(usize, u8), usize>,
    state: usize,
}

#[derive(Debug, Default)]
struct Node {
    /// Bytes from the root: how much of a stop string has been seen.
    depth: usize,
    fallback: usize,
    /// Length of the longest stop string that ends here, 0 for none.
    stop_len: usize,
}

impl StopMatcher {
    /// Empty stop strings are left out.
    pub(super) fn new(stops: &[String]) -> StopMatcher {
        let mut matcher = StopMatcher {
            nodes: vec![Node::default()],
            edges: HashMap::new(),
            state: 0,
        };
        for stop in stops {
            matcher.add(stop.as_bytes());
        }
        matcher.link();
        matcher
    }

    /// Takes the next byte; the length in bytes of the stop string that it completes, of several the longest.
    pub(super) fn step(&mut self, byte: u8) -> Option<usize> {
        self.state = self.next(self.state, byte);
        Some(self.nodes[self.state].stop_len).filter(|len| *len > 0)
    }

    /// Bytes at the end of the text that may become a stop string.
    pub(super) fn held(&self) -> usize {
        self.nodes[self.state].depth
    }

    fn add(&mut self, stop: &[u8]) {
        let mut at = 0;
        for byte in stop {
            let depth = self.nodes[at].depth + 1;
            let fresh = self.nodes.len();
            at = *self.edges.entry((at, *byte)).or_insert(fresh);
            if at == fresh {
                self.nodes.push(Node {
                    depth,
                    ..Node::default()
                });
            }
        }
        self.nodes[at].stop_len = stop.len();
    }

    fn link(&mut self) {
        let mut edges: Vec<_> = self.edges.iter().map(|(&(from, byte), &to)| (from, byte, to)).collect();
        // Shallow nodes first: a fallback is always shallower.
        edges.sort_by_key(|&(.., to)| self.nodes[to].depth);
        for (from, byte, to) in edges {
            if from != 0 {
                self.nodes[to].fallback = self.next(self.nodes[from].fallback, byte);
            }
            if self.nodes[to].stop_len == 0 {
                self.nodes[to].stop_len = self.nodes[self.nodes[to].fallback].stop_len;
            }
        }
    }

    fn next(&self, mut at: usize, byte: u8) -> usize {
        loop {
            if let Some(&to) = self.edges.get(&(at, byte)) {
                return to;
            }
            if at == 0 {
                return 0;
            }
            at = self.nodes[at].fallback;
        }
    }
}
