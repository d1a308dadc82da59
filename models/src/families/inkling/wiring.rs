//! How the MTP blocks are fed. Published accounts contradict each other; the weights are the same, and so is the text.

/// One way to feed the blocks and to read their drafts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Wiring {
    /// Whether the target's hidden states pass its final norm first.
    pub(super) hidden_normed: bool,
    /// Whether embeddings pass the target's embedding norm before the block's own.
    pub(super) embed_normed: bool,
    /// Whether a block's output passes the target's final norm before the head.
    pub(super) readout_normed: bool,
    /// Whether every block reads the whole sequence, each one token further on than the one before it. Otherwise only
    /// block 0 does, and the others start empty in every round.
    pub(super) every_depth: bool,
}

/// Names of [`WIRINGS`], in their order.
pub(super) const NAMES: &[&str] = &[
    crate::family::CONTRACT_WIRING,
    "contract-history",
    "sglang",
    "transformers",
    "double-norm",
];

/// The wirings that are in use somewhere, the default first.
pub(super) const WIRINGS: &[Wiring] = &[
    // The reference's: hidden states and embeddings as they are, the head as the target's own.
    Wiring {
        hidden_normed: false,
        embed_normed: false,
        readout_normed: true,
        every_depth: false,
    },
    // The same with a history for every block.
    Wiring {
        hidden_normed: false,
        embed_normed: false,
        readout_normed: true,
        every_depth: true,
    },
    // SGLang's: normed inputs, and a head without the final norm.
    Wiring {
        hidden_normed: true,
        embed_normed: true,
        readout_normed: false,
        every_depth: true,
    },
    // The transformers library's: as SGLang's, with plain embeddings.
    Wiring {
        hidden_normed: true,
        embed_normed: false,
        readout_normed: false,
        every_depth: true,
    },
    // The reference's, with embeddings that pass both norms.
    Wiring {
        hidden_normed: false,
        embed_normed: true,
        readout_normed: true,
        every_depth: false,
    },
];
