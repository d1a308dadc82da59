//! Qwen3.5, 3.6 and 3.8: gated delta layers with full attention every few layers, and their MTP heads.

mod config;
mod drafter;
mod generation;
mod head;
mod layer;
mod mlp;
mod target;
mod weights;

pub use drafter::{Drafter, State};
pub use target::{Capture, Target};

use crate::Result;
use crate::checkpoint::{Checkpoint, Standalone};
use crate::family::{self, HeadLocation, LoadOptions};

/// This family.
#[derive(Debug)]
pub struct Family;

impl family::Family for Family {
    const NAME: &'static str = "qwen3_5";
    type Target = Target;
    type Drafter = Drafter;

    fn knows(model_type: &str) -> bool {
        [
            "qwen3_5",
            "qwen3_5_moe",
            "qwen3_5_text",
            "qwen3_5_moe_text",
            "qwen3_5_mtp",
        ]
        .contains(&model_type)
    }

    fn head(checkpoint: &Checkpoint) -> Option<HeadLocation> {
        head::head_location(checkpoint)
    }

    fn layers(checkpoint: &Checkpoint) -> Result<usize> {
        Ok(config::Config::read(&checkpoint.config)?.layers.len())
    }

    fn check_head(checkpoint: &Checkpoint) -> Result<()> {
        let options = LoadOptions {
            dry: true,
            ..LoadOptions::default()
        };
        Drafter::read(checkpoint, mlx_rs::Dtype::Float32, options).map(drop)
    }

    fn standalone(checkpoint: &Checkpoint) -> Result<Standalone> {
        let c = config::Config::read(&checkpoint.config)?;
        head::standalone(checkpoint, c.tie_word_embeddings)
    }

    fn head_advice(checkpoint: &Checkpoint) -> Option<String> {
        generation::head_advice(checkpoint)
    }

    fn pair_doubt(target: &Checkpoint, head: &Checkpoint) -> Option<String> {
        generation::doubt(target, head)
    }

    fn load_target(checkpoint: &Checkpoint, options: LoadOptions) -> Result<Target> {
        Target::load(checkpoint, options)
    }

    fn load_drafter(checkpoint: &Checkpoint, target: &Target, options: LoadOptions) -> Result<Drafter> {
        Drafter::load(checkpoint, target, options)
    }
}
