use tauri::State;

use super::App;
use crate::ipc::{AppError, Chat, ChatSummary};

#[tauri::command]
pub(crate) async fn list_chats(state: State<'_, App>) -> Result<Vec<ChatSummary>, AppError> {
    Ok(state.get()?.store.list_chats().await?)
}

#[tauri::command]
pub(crate) async fn open_chat(state: State<'_, App>, chat_id: i32) -> Result<Chat, AppError> {
    Ok(state.get()?.store.open_chat(chat_id).await?)
}

#[tauri::command]
pub(crate) async fn rename_chat(state: State<'_, App>, chat_id: i32, title: String) -> Result<ChatSummary, AppError> {
    state.get()?.rename_chat(chat_id, &title).await
}

#[tauri::command]
pub(crate) async fn delete_chat(state: State<'_, App>, chat_id: i32) -> Result<(), AppError> {
    state.get()?.delete_chat(chat_id).await
}
