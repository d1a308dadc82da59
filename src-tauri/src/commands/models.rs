use tauri::{State, ipc::Channel};

use super::App;
use crate::ipc::{AppError, LocalModel, ModelStatus};

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

#[tauri::command]
pub(crate) async fn list_models(state: State<'_, App>) -> Result<Vec<LocalModel>, AppError> {
    state.get()?.library.list().await
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
