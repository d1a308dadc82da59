//! Inkling: sliding and global attention with relative biases, short convolutions, routed and shared experts, and a
//! chain of MTP blocks. The text part runs; image and audio towers are set aside.

mod attention;
mod config;
mod drafter;
mod head;
mod layer;
mod mlp;
mod sconv;
mod target;
mod weights;
mod wiring;

pub use drafter::{Drafter, State};
pub use target::{Capture, Target};

use crate::Result;
use crate::checkpoint::{Checkpoint, Standalone};
use crate::family::{self, HeadLocation, LoadOptions};

/// This family.
#[derive(Debug)]
pub struct Family;

impl family::Family for Family {
    const NAME: &'static str = "inkling";
    type Target = Target;
    type Drafter = Drafter;

    fn knows(model_type: &str) -> bool {
        ["inkling_mm_model", "inkling", "inkling_text", "inkling_mtp"].contains(&model_type)
    }

    fn head(checkpoint: &Checkpoint) -> Option<HeadLocation> {
        head::head_location(checkpoint)
    }

    fn notes(checkpoint: &Checkpoint) -> Vec<String> {
        weights::has_towers(checkpoint)
            .then(|| "the image and audio parts of this model are not used: it reads and writes text".to_owned())
            .into_iter()
            .collect()
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
        head::standalone(checkpoint)
    }

    fn head_advice(checkpoint: &Checkpoint) -> Option<String> {
        head::head_advice(checkpoint)
    }

    fn pair_doubt(_target: &Checkpoint, _head: &Checkpoint) -> Option<String> {
        None
    }

    fn load_target(checkpoint: &Checkpoint, options: LoadOptions) -> Result<Target> {
        Target::load(checkpoint, options)
    }

    fn load_drafter(checkpoint: &Checkpoint, target: &Target, options: LoadOptions) -> Result<Drafter> {
        Drafter::load(checkpoint, target, options)
    }
}
