//! Writes the Rust bindings of mlx-c that mlx-sys's build script writes on macOS.
//! Usage: `mlx-bindings MLX_C_DIR COMPAT_H OUT_DIR`.

use std::error::Error;
use std::path::{Path, PathBuf};

fn main() -> Result<(), Box<dyn Error>> {
    let [mlx_c, compat, out] = <[String; 3]>::try_from(std::env::args().skip(1).collect::<Vec<_>>())
        .map_err(|_| "usage: mlx-bindings MLX_C_DIR COMPAT_H OUT_DIR")?;

    let mut headers = std::fs::read_dir(Path::new(&mlx_c).join("mlx/c"))?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<Vec<PathBuf>, std::io::Error>>()?;
    headers.retain(|path| path.extension().is_some_and(|extension| extension == "h"));
    headers.sort();

    // The options of mlx-sys's own build script, and the forced include.
    let mut builder = bindgen::Builder::default()
        .rust_target("1.73.0".parse()?)
        .clang_args([&format!("-I{mlx_c}"), "-include", &compat])
        .blocklist_function("malloc")
        .blocklist_function("realloc");
    for header in &headers {
        builder = builder.header(header.to_string_lossy());
    }
    std::fs::create_dir_all(&out)?;
    builder.generate()?.write_to_file(Path::new(&out).join("bindings.rs"))?;
    Ok(())
}
