//! `slipstream` alone opens the window; with arguments it runs in the terminal.
#![cfg_attr(all(windows, not(debug_assertions)), windows_subsystem = "windows")]

fn main() -> std::process::ExitCode {
    models::prepare_process();
    app::cli::main(std::env::args_os().collect())
}
