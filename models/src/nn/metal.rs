//! macOS: where MLX finds its Metal kernels.

#[cfg(any(target_os = "macos", test))]
use std::path::{Path, PathBuf};

/// The kernels a bundle carries: `Slipstream.app/Contents/Resources/mlx.metallib`, seen from the program in
/// `Contents/MacOS`. A program built from source has none and finds them where the build put them.
#[cfg(any(target_os = "macos", test))]
fn bundled_kernels(program: &Path) -> Option<PathBuf> {
    let contents = program.parent()?.parent()?;
    Some(contents.join("Resources/mlx.metallib")).filter(|path| path.is_file())
}

/// Points MLX at the bundle's kernels. Must come before anything that touches the GPU, which asking for memory figures
/// does.
#[cfg(target_os = "macos")]
pub(crate) fn use_bundled_kernels() {
    let program = std::env::current_exe().and_then(|path| path.canonicalize());
    let kernels = program.ok().as_deref().and_then(bundled_kernels);
    if let Some(path) = kernels.as_deref().and_then(Path::to_str) {
        // A refusal shows at the first kernel, in MLX's own words.
        let _ = mlx_rs::metal::set_metallib_path(path);
    }
}

/// There is no Metal here.
#[cfg(not(target_os = "macos"))]
pub(crate) fn use_bundled_kernels() {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_are_looked_for_in_the_bundle() {
        let dir = tempfile::tempdir().unwrap();
        let contents = dir.path().join("Slipstream.app/Contents");
        let program = contents.join("MacOS/slipstream");
        std::fs::create_dir_all(contents.join("Resources")).unwrap();
        assert_eq!(bundled_kernels(&program), None, "built from source");
        std::fs::write(contents.join("Resources/mlx.metallib"), b"").unwrap();
        assert_eq!(bundled_kernels(&program), Some(contents.join("Resources/mlx.metallib")));
    }
}
