//! Passes on where libmlxc.so is, so that each package that links a program can set its run path.
fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // Only set where .cargo/config.toml overrides mlx-sys's build script, which is never on macOS.
    if let Ok(dir) = std::env::var("DEP_MLX_LIBDIR") {
        println!("cargo:libdir={dir}");
        println!("cargo:rustc-link-arg=-Wl,-rpath,$ORIGIN/lib:{dir}");
    }
}
