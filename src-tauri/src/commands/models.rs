use tauri::{State, ipc::Channel};
use tauri_plugin_dialog::DialogExt;

use super::App;
use crate::ipc::{AppError, Deletion, ModelStatus, ModelsView, ShelfView, Shelved};

#[tauri::command]
pub(crate) fn model_status(state: State<'_, App>) -> Result<ModelStatus, AppError> {
    Ok(state.get()?.library.status())
}

/// Sends the status now and at each change for as long as the window lives.
#[tauri::command]
pub(crate) async fn watch_model(state: State<'_, App>, on_status: Channel<ModelStatus>) -> Result<(), AppError> {
    let library = state.get()?.library.clone();
    tauri::async_runtime::spawn(async move { library.watch(move |status| on_status.send(status).is_ok()).await });
    Ok(())
}

/// All checkpoints on this machine, and the catalogue.
#[tauri::command]
pub(crate) async fn list_models(state: State<'_, App>) -> Result<ModelsView, AppError> {
    state.get()?.models().await
}

/// One folder, as the loader judges it.
#[tauri::command]
pub(crate) async fn look_at_folder(state: State<'_, App>, path: String) -> Result<Shelved, AppError> {
    state.get()?.library.look_at(std::path::Path::new(&path)).await
}

#[tauri::command]
pub(crate) async fn add_folder(state: State<'_, App>, path: String) -> Result<ShelfView, AppError> {
    state.get()?.library.add_folder(&path).await
}

#[tauri::command]
pub(crate) async fn remove_folder(state: State<'_, App>, path: String) -> Result<ShelfView, AppError> {
    state.get()?.library.remove_folder(&path).await
}

/// What deleting would free.
#[tauri::command]
pub(crate) async fn weigh_model(state: State<'_, App>, path: String) -> Result<Deletion, AppError> {
    state.get()?.library.weigh(&path).await
}

/// Resolves to the bytes that came free. Another program's folder only if `foreign` was agreed to.
#[tauri::command]
pub(crate) async fn delete_model(state: State<'_, App>, path: String, foreign: bool) -> Result<f64, AppError> {
    state.get()?.delete_model(&path, foreign).await
}

/// The system's own dialog for a folder; nothing if the person closed it.
#[tauri::command]
pub(crate) async fn pick_folder(window: tauri::Window) -> Option<String> {
    let (send, answer) = tokio::sync::oneshot::channel();
    let dialog = window.dialog().file().set_parent(&window);
    // Nobody may be waiting for the answer any more.
    dialog.pick_folder(move |folder| drop(send.send(folder)));
    answer.await.ok().flatten().map(|folder| folder.to_string())
}

#[tauri::command]
pub(crate) async fn load_model(
    state: State<'_, App>,
    path: String,
    drafter_path: Option<String>,
) -> Result<ModelStatus, AppError> {
    state.get()?.load_model(&path, drafter_path.as_deref()).await
}

#[tauri::command]
pub(crate) async fn unload_model(state: State<'_, App>) -> Result<(), AppError> {
    state.get()?.unload_model().await
}
