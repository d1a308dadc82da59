//! Where libmlxc.so is looked for at run time: where the .deb has it, beside the program, then where setup.sh put it.
fn main() {
    tauri_build::build();
    println!("cargo:rerun-if-changed=build.rs");
    // The migrations are compiled in by a macro that does not watch the folder.
    println!("cargo:rerun-if-changed=migrations");
    if let Ok(dir) = std::env::var("DEP_SLIPSTREAM_MODELS_LIBDIR") {
        println!("cargo:rustc-link-arg=-Wl,-rpath,$ORIGIN/../lib/slipstream/mlx/lib:$ORIGIN/lib:{dir}");
    }
}
