use tauri::{State, ipc::Channel};

use super::App;
use crate::ipc::{AppError, Cancelled, Download, DownloadPlan, FoundRepo, TokenView, Wanted};

#[tauri::command]
pub(crate) async fn search_hub(state: State<'_, App>, query: String) -> Result<Vec<FoundRepo>, AppError> {
    state.get()?.downloads()?.search(&query).await
}

#[tauri::command]
pub(crate) async fn plan_download(state: State<'_, App>, wanted: Wanted) -> Result<DownloadPlan, AppError> {
    state.get()?.downloads()?.plan(wanted).await
}

/// Nobody looks at the plan any more that is being made.
#[tauri::command]
pub(crate) fn cancel_plan(state: State<'_, App>) -> Result<(), AppError> {
    state.get()?.downloads()?.cancel_plan();
    Ok(())
}

/// Starts what a plan showed, or what is wanted without one; resolves to the download's id.
#[tauri::command]
pub(crate) async fn start_download(
    state: State<'_, App>,
    wanted: Wanted,
    plan_id: Option<String>,
    then_chat: bool,
) -> Result<String, AppError> {
    let downloads = state.get()?.downloads()?;
    downloads.start(wanted, plan_id.as_deref(), then_chat).await
}

#[tauri::command]
pub(crate) async fn pause_download(state: State<'_, App>, id: String) -> Result<(), AppError> {
    state.get()?.downloads()?.pause(&id).await
}

#[tauri::command]
pub(crate) async fn resume_download(state: State<'_, App>, id: String) -> Result<(), AppError> {
    state.get()?.downloads()?.resume(&id).await
}

/// Stops it and takes it off the list, or takes off one that is over.
#[tauri::command]
pub(crate) async fn cancel_download(state: State<'_, App>, id: String) -> Result<Cancelled, AppError> {
    state.get()?.downloads()?.cancel(&id).await
}

/// Sends all downloads now and at each change for as long as the window lives.
#[tauri::command]
pub(crate) async fn watch_downloads(state: State<'_, App>, on_change: Channel<Vec<Download>>) -> Result<(), AppError> {
    let downloads = state.get()?.downloads()?.clone();
    tauri::async_runtime::spawn(async move { downloads.watch(move |all| on_change.send(all).is_ok()).await });
    Ok(())
}

#[tauri::command]
pub(crate) async fn token_status(state: State<'_, App>) -> Result<TokenView, AppError> {
    state.get()?.token_status().await
}

/// The token goes in and never comes out.
#[tauri::command]
pub(crate) async fn set_token(state: State<'_, App>, token: String) -> Result<TokenView, AppError> {
    state.get()?.set_token(&token).await
}

#[tauri::command]
pub(crate) async fn clear_token(state: State<'_, App>) -> Result<TokenView, AppError> {
    state.get()?.clear_token().await
}
