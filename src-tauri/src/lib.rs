//! The desktop app and its command line around the engine crate `models`.

mod attach;
pub mod bench;
pub mod cli;
mod commands;
pub mod downloads;
pub mod error;
pub mod hub;
pub mod ipc;
mod json;
pub mod library;
pub mod machine;
pub mod offers;
pub mod power;
pub mod state;
pub mod store;
pub mod transfer;
pub mod turn;
mod words;

use tauri::Manager;
use tauri_plugin_window_state::StateFlags;

use crate::state::AppState;

/// The app's identifier, as in `tauri.conf.json`; it names the data folder.
pub const IDENTIFIER: &str = "chat.slipstream.app";

/// Opens the window and returns when the app ends.
pub fn run() -> tauri::Result<()> {
    run_with(async |state| state)
}

/// The same with a state that was changed before the window sees it: the stories bring their own engine and chats.
pub fn run_with(change: impl AsyncFnOnce(AppState) -> AppState + Send + 'static) -> tauri::Result<()> {
    let app = tauri::Builder::default()
        .plugin(tauri_plugin_single_instance::init(|app, _arguments, _folder| {
            commands::window::show(app);
        }))
        .plugin(commands::window::guard())
        .on_window_event(commands::window::on_event)
        .plugin(
            // Whether it was hidden is not kept: a start shows it.
            tauri_plugin_window_state::Builder::new()
                .with_state_flags(StateFlags::all() - StateFlags::VISIBLE)
                .build(),
        )
        .plugin(tauri_plugin_opener::init())
        .plugin(tauri_plugin_dialog::init())
        .invoke_handler(tauri::generate_handler![
            commands::chats::list_chats,
            commands::chats::open_chat,
            commands::chats::rename_chat,
            commands::chats::delete_chat,
            commands::library::restore_chat,
            commands::library::list_deleted,
            commands::library::purge_chats,
            commands::library::delete_all_chats,
            commands::library::pin_chat,
            commands::library::tag_chat,
            commands::library::duplicate_chat,
            commands::library::configure_chat,
            commands::library::set_draft,
            commands::library::new_draft,
            commands::library::search_chats,
            commands::library::show_message,
            commands::library::delete_message,
            commands::library::message_origin,
            commands::library::attach_files,
            commands::library::sort_drop,
            commands::library::read_pdf,
            commands::library::count_tokens,
            commands::library::export_chats,
            commands::library::import_chats,
            commands::turns::send_message,
            commands::turns::regenerate,
            commands::turns::edit_message,
            commands::turns::answer_message,
            commands::turns::continue_reply,
            commands::turns::stop_turn,
            commands::turns::answer_now,
            commands::models::model_status,
            commands::models::watch_model,
            commands::models::list_models,
            commands::models::load_model,
            commands::models::unload_model,
            commands::models::look_at_folder,
            commands::models::add_folder,
            commands::models::remove_folder,
            commands::models::weigh_model,
            commands::models::delete_model,
            commands::models::pick_folder,
            commands::downloads::search_hub,
            commands::downloads::plan_download,
            commands::downloads::cancel_plan,
            commands::downloads::start_download,
            commands::downloads::pause_download,
            commands::downloads::resume_download,
            commands::downloads::cancel_download,
            commands::downloads::watch_downloads,
            commands::downloads::token_status,
            commands::downloads::set_token,
            commands::downloads::clear_token,
            commands::settings::get_settings,
            commands::settings::update_settings,
            commands::settings::data_folder,
            commands::settings::open_data_folder,
            commands::bench::compare,
            commands::bench::bench,
            commands::bench::list_measurements,
            commands::bench::open_comparison,
            commands::bench::open_bench,
            commands::bench::bench_texts,
            commands::bench::remove_measurement,
        ])
        .setup(|app| {
            let resources = app.path().resource_dir().ok();
            let state = tauri::async_runtime::block_on(async {
                let state = AppState::open(resources.as_deref()).await?;
                state.library.start().await?;
                Ok::<_, ipc::AppError>(change(state).await)
            });
            app.manage(commands::App(state));
            #[cfg(target_os = "linux")]
            if let Some(window) = app.get_webview_window("main") {
                window.with_webview(|webview| commands::window::reload_when_killed(&webview.inner()))?;
            }
            Ok(())
        })
        .build(tauri::generate_context!())?;
    app.run(|app, event| {
        if let tauri::RunEvent::Exit = event
            && let Some(state) = app.try_state::<commands::App>()
            && let Ok(state) = state.get()
        {
            tauri::async_runtime::block_on(async {
                // A reply that does not end in time is marked at the next start.
                let _ = tokio::time::timeout(std::time::Duration::from_secs(3), state.close()).await;
            });
        }
        #[cfg(target_os = "macos")]
        if let tauri::RunEvent::Reopen { .. } = event {
            commands::window::show(app);
        }
    });
    Ok(())
}
