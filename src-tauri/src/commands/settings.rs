use tauri::State;

use super::App;
use crate::ipc::{AppError, Settings};

#[tauri::command]
pub(crate) async fn get_settings(state: State<'_, App>) -> Result<Settings, AppError> {
    Ok(state.get()?.store.settings().await?)
}

#[tauri::command]
pub(crate) async fn update_settings(state: State<'_, App>, settings: Settings) -> Result<Settings, AppError> {
    Ok(state.get()?.store.update_settings(&settings).await?)
}
