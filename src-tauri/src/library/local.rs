use std::path::{Path, PathBuf};

use super::find::{self, text};
use super::footprint::size;
use crate::error::Error;
use crate::ipc::LocalModel;

/// The id of the built-in model.
pub const BUILTIN: &str = "builtin";

const BUILTIN_NAME: &str = "Built-in demo (Qwen3.5 style, 4-bit)";
const BUILTIN_NOTE: &str =
    "A small demonstration model: it gives short answers to what it was taught, and is often wrong beyond that.";

/// Where the files that come with the app are.
#[derive(Debug)]
pub struct Assets {
    builtin: Option<PathBuf>,
}

impl Assets {
    /// Looks in `SLIPSTREAM_ASSETS`, in the bundle's resources, then around the program.
    #[must_use]
    pub fn find(resources: Option<&Path>) -> Self {
        let told = std::env::var_os("SLIPSTREAM_ASSETS").map(PathBuf::from);
        // Told where to look, it looks nowhere else: a wrong answer must show.
        let roots = match told {
            Some(dir) => vec![dir],
            None => resources
                .map(Path::to_owned)
                .into_iter()
                .chain(around_the_program())
                .collect(),
        };
        Self::among(&roots)
    }

    /// Looks in one assets folder.
    #[must_use]
    pub fn in_dir(dir: &Path) -> Self {
        Self::among(&[dir.to_owned()])
    }

    fn among(roots: &[PathBuf]) -> Self {
        let builtin = roots
            .iter()
            .flat_map(|root| {
                [
                    root.join("builtin"),
                    root.join("assets/builtin"),
                    root.join("_up_/assets/builtin"),
                ]
            })
            .find(|dir| dir.join("target/config.json").is_file());
        Assets { builtin }
    }

    /// Folders of the built-in target and drafter.
    pub fn builtin(&self) -> Result<(PathBuf, PathBuf), Error> {
        let dir = self.builtin.as_ref().ok_or(Error::BuiltinMissing)?;
        Ok((dir.join("target"), dir.join("drafter")))
    }

    /// Describes the built-in model or the one in a folder, without looking inside its files.
    pub fn describe(&self, path: &str, drafter: Option<&str>) -> Result<LocalModel, Error> {
        let drafter = drafter.filter(|path| !path.is_empty()).map(absolute);
        let builtin = self.builtin();
        let is_builtin = path == BUILTIN || builtin.as_ref().is_ok_and(|(target, _)| *target == absolute(path));
        let (id, name, note, target, drafter) = if is_builtin {
            let (target, own) = builtin?;
            (
                BUILTIN.to_owned(),
                BUILTIN_NAME.to_owned(),
                Some(BUILTIN_NOTE.to_owned()),
                target,
                drafter.or(Some(own)),
            )
        } else {
            let target = absolute(path);
            (text(&target), name(&target), None, target, drafter)
        };
        let bytes = size(&target) + drafter.as_deref().map_or(0, size);
        let (path, drafter_path) = (text(&target), drafter.as_deref().map(text));
        Ok(LocalModel {
            id,
            name,
            path,
            drafter_path,
            note,
            bytes: bytes as f64,
        })
    }
}

/// What can be shown of a model that cannot even be described.
pub(super) fn unknown(id: &str) -> LocalModel {
    let name = if id == BUILTIN {
        BUILTIN_NAME.to_owned()
    } else {
        name(Path::new(id))
    };
    LocalModel {
        id: id.to_owned(),
        name,
        path: id.to_owned(),
        drafter_path: None,
        note: None,
        bytes: 0.0,
    }
}

/// Bundles keep resources beside or near the program, a build tree some levels above it.
fn around_the_program() -> Vec<PathBuf> {
    let Ok(program) = std::env::current_exe().and_then(|path| path.canonicalize()) else {
        return Vec::new();
    };
    let near = program.parent().into_iter().flat_map(|dir| {
        [
            // Spelled as the window's own way to them: what is kept of a model is found by its path.
            dir.with_file_name("Resources"),
            dir.with_file_name("lib").join("Slipstream"),
            dir.with_file_name("lib").join("slipstream"),
        ]
    });
    near.chain(program.ancestors().skip(1).take(4).map(Path::to_owned))
        .collect()
}

pub(super) fn absolute(path: &str) -> PathBuf {
    let path = match path.strip_prefix("~/") {
        Some(rest) => dirs::home_dir().unwrap_or_default().join(rest),
        None => PathBuf::from(path),
    };
    std::path::absolute(&path).unwrap_or(path)
}

/// The folder's name; in a Hugging Face cache the repository's.
fn name(dir: &Path) -> String {
    find::alone(dir).name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cache_folder_is_named_after_its_repository() {
        assert_eq!(
            name(Path::new("/x/hub/models--Qwen--Qwen3.5-4B/snapshots/0a1b2c")),
            "Qwen/Qwen3.5-4B"
        );
        assert_eq!(name(Path::new("/x/my-model")), "my-model");
        assert_eq!(name(Path::new("/x/snapshots/abc")), "abc");
    }
}
