//! Where libmlxc.so is looked for at run time: beside the program, then where setup.sh put it.
fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if let Ok(dir) = std::env::var("DEP_SLIPSTREAM_MODELS_LIBDIR") {
        println!("cargo:rustc-link-arg=-Wl,-rpath,$ORIGIN/lib:{dir}");
    }
}
