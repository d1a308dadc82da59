use tauri::State;
use tauri_plugin_opener::OpenerExt;

use super::App;
use crate::error::Error;
use crate::ipc::{AppError, DataFolder, Settings};

#[tauri::command]
pub(crate) async fn get_settings(state: State<'_, App>) -> Result<Settings, AppError> {
    Ok(state.get()?.store.settings().await?)
}

#[tauri::command]
pub(crate) async fn update_settings(state: State<'_, App>, settings: Settings) -> Result<Settings, AppError> {
    Ok(state.get()?.store.update_settings(&settings).await?)
}

#[tauri::command]
pub(crate) async fn data_folder(state: State<'_, App>) -> Result<DataFolder, AppError> {
    state.get()?.data_folder().await
}

/// Shows it in the system's own file manager.
#[tauri::command]
pub(crate) async fn open_data_folder(app: tauri::AppHandle, state: State<'_, App>) -> Result<(), AppError> {
    let path = state.get()?.data_folder().await?.path;
    let opened = app.opener().open_path(&path, None::<&str>);
    Ok(opened.map_err(|error| Error::File {
        path,
        source: std::io::Error::other(error),
    })?)
}
