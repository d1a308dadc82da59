//! What the controller does at the moment, in numbers and in words.

/// Speculation as it is now.
#[derive(Debug, Clone, PartialEq)]
pub enum ControllerState {
    /// Rounds have drafts.
    On {
        /// Drafts a round.
        depth: usize,
        /// Tokens a round gives.
        tokens_per_round: f64,
        /// Tokens a second by those of plain decoding; `None` until a plain step was measured.
        speedup: Option<f64>,
        /// Whether drafts were made at all; before, how often they are right is an assumption.
        is_measured: bool,
    },
    /// Plain decoding, as it is faster.
    Parked {
        /// Drafts a round would have: the best depth there is.
        depth: usize,
        /// Share of its drafts that are right: as counted in the last rounds that had as many.
        acceptance: f64,
        /// What its round costs, in plain steps.
        cost_ratio: f64,
        /// Its tokens a second by those of plain decoding.
        speedup: f64,
        /// Whether enough rounds had as many drafts; before, the share is an assumption.
        is_measured: bool,
    },
    /// A few rounds at another depth, to see whether it has become the better one.
    Probing {
        /// Drafts a round for these rounds; 0 is plain decoding.
        depth: usize,
        /// Drafts a round before; 0 is parked.
        home: usize,
        /// Rounds left.
        rounds: usize,
    },
}

impl ControllerState {
    /// The state in one plain sentence.
    #[must_use]
    pub fn sentence(&self) -> String {
        let drafts = |n: usize| {
            if n == 1 {
                "1 draft".to_owned()
            } else {
                format!("{n} drafts")
            }
        };
        match self {
            Self::On {
                depth,
                tokens_per_round,
                speedup,
                is_measured,
            } => {
                let gives = if *is_measured { "gives" } else { "is taken to give" };
                let round = format!(
                    "on: a round with {} {gives} {tokens_per_round:.2} tokens",
                    drafts(*depth)
                );
                match speedup {
                    Some(speedup) => format!("{round}, so speculation is {speedup:.2} times plain"),
                    None => round,
                }
            }
            Self::Parked { depth: 0, .. } => "parked: no drafts are asked for".to_owned(),
            Self::Parked {
                depth,
                acceptance,
                cost_ratio,
                speedup,
                is_measured,
            } => format!(
                "parked: drafts {} right {:.0} % of the time, and a round with {} costs {cost_ratio:.2} plain steps, so \
                 speculation would be {speedup:.2} times plain",
                if *is_measured { "are" } else { "are taken to be" },
                acceptance * 100.0,
                drafts(*depth)
            ),
            Self::Probing { depth: 0, .. } => {
                "probing: a few plain steps, to see whether they are faster by now".to_owned()
            }
            Self::Probing { depth, .. } => format!(
                "probing: a few rounds with {}, to see whether they are faster by now",
                drafts(*depth)
            ),
        }
    }
}
