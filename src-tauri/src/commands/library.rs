//! The library of chats.

use std::path::PathBuf;

use tauri::State;
use tauri_plugin_dialog::DialogExt;
use tokio::sync::oneshot;

use super::App;
use crate::ipc::{
    AppError, Chat, ChatConfig, ChatSummary, Dropped, ExportFormat, Imported, Picked, Provenance, SearchHit,
};

#[tauri::command]
pub(crate) async fn restore_chat(state: State<'_, App>, chat_id: i32) -> Result<ChatSummary, AppError> {
    Ok(state.get()?.store.restore_chat(chat_id).await?)
}

/// The deleted chats that can still be restored.
#[tauri::command]
pub(crate) async fn list_deleted(state: State<'_, App>) -> Result<Vec<ChatSummary>, AppError> {
    Ok(state.get()?.store.list_deleted().await?)
}

/// Removes a deleted chat for good, or all of them.
#[tauri::command]
pub(crate) async fn purge_chats(state: State<'_, App>, chat_id: Option<i32>) -> Result<(), AppError> {
    let store = &state.get()?.store;
    match chat_id {
        Some(chat_id) => store.purge_chat(chat_id).await?,
        None => store.purge().await?,
    }
    Ok(())
}

/// Deletes every chat; each can be restored until it is purged.
#[tauri::command]
pub(crate) async fn delete_all_chats(state: State<'_, App>) -> Result<(), AppError> {
    state.get()?.delete_all_chats().await
}

#[tauri::command]
pub(crate) async fn pin_chat(state: State<'_, App>, chat_id: i32, pinned: bool) -> Result<ChatSummary, AppError> {
    Ok(state.get()?.store.pin_chat(chat_id, pinned).await?)
}

#[tauri::command]
pub(crate) async fn tag_chat(state: State<'_, App>, chat_id: i32, tags: Vec<String>) -> Result<ChatSummary, AppError> {
    Ok(state.get()?.store.tag_chat(chat_id, &tags).await?)
}

#[tauri::command]
pub(crate) async fn duplicate_chat(
    state: State<'_, App>,
    chat_id: i32,
    title: String,
) -> Result<ChatSummary, AppError> {
    Ok(state.get()?.store.duplicate_chat(chat_id, &title).await?)
}

#[tauri::command]
pub(crate) async fn configure_chat(state: State<'_, App>, chat_id: i32, config: ChatConfig) -> Result<(), AppError> {
    state.get()?.configure_chat(chat_id, &config).await
}

/// Without a chat: of one that is not begun yet.
#[tauri::command]
pub(crate) async fn set_draft(state: State<'_, App>, chat_id: Option<i32>, text: String) -> Result<(), AppError> {
    Ok(state.get()?.store.set_draft(chat_id, &text).await?)
}

#[tauri::command]
pub(crate) async fn new_draft(state: State<'_, App>) -> Result<String, AppError> {
    Ok(state.get()?.store.new_draft().await?)
}

#[tauri::command]
pub(crate) async fn search_chats(state: State<'_, App>, query: String) -> Result<Vec<SearchHit>, AppError> {
    Ok(state.get()?.store.search(&query).await?)
}

/// Shows the branch with this message.
#[tauri::command]
pub(crate) async fn show_message(state: State<'_, App>, message_id: i32) -> Result<Chat, AppError> {
    Ok(state.get()?.store.show_message(message_id).await?)
}

/// Deletes it with all that follow it.
#[tauri::command]
pub(crate) async fn delete_message(state: State<'_, App>, message_id: i32) -> Result<Chat, AppError> {
    Ok(state.get()?.store.delete_message(message_id).await?)
}

/// How the answer of a reply came.
#[tauri::command]
pub(crate) async fn message_origin(state: State<'_, App>, message_id: i32) -> Result<Provenance, AppError> {
    Ok(state.get()?.store.message_origin(message_id).await?)
}

/// Asks for files and reads those that are text; none if the person closed the dialog.
#[tauri::command]
pub(crate) async fn attach_files(window: tauri::Window, state: State<'_, App>) -> Result<Picked, AppError> {
    let (send, answer) = oneshot::channel();
    let dialog = window.dialog().file().set_parent(&window);
    // Nobody may be waiting for the answer any more.
    dialog.pick_files(move |files| drop(send.send(files)));
    let files = answer.await.ok().flatten().unwrap_or_default();
    let paths: Vec<_> = files.into_iter().filter_map(|file| file.into_path().ok()).collect();
    state.get()?.attach(&paths).await
}

/// Tells what was dropped on the window, and reads the files of it.
#[tauri::command]
pub(crate) async fn sort_drop(state: State<'_, App>, paths: Vec<PathBuf>) -> Result<Dropped, AppError> {
    state.get()?.sort_drop(&paths).await
}

/// The bytes of a PDF that was picked.
#[tauri::command]
pub(crate) async fn read_pdf(state: State<'_, App>, id: u32) -> Result<tauri::ipc::Response, AppError> {
    Ok(tauri::ipc::Response::new(state.get()?.take_pdf(id).await?))
}

/// The tokens of a text, if they can be counted now.
#[tauri::command]
pub(crate) async fn count_tokens(state: State<'_, App>, text: String) -> Result<Option<u32>, AppError> {
    Ok(state.get()?.count_tokens(&text).await)
}

/// Asks where to, and writes one chat or all there. Resolves to the file; to nothing if the person closed the dialog.
#[tauri::command]
pub(crate) async fn export_chats(
    window: tauri::Window,
    state: State<'_, App>,
    chat_id: Option<i32>,
    format: ExportFormat,
    name: String,
) -> Result<Option<String>, AppError> {
    let (send, answer) = oneshot::channel();
    let dialog = window.dialog().file().set_parent(&window);
    let file_name = crate::transfer::file_name(&name, format);
    // Nobody may be waiting for the answer any more.
    dialog
        .set_file_name(file_name)
        .save_file(move |file| drop(send.send(file)));
    let Some(path) = answer.await.ok().flatten().and_then(|file| file.into_path().ok()) else {
        return Ok(None);
    };
    state.get()?.export_chats(chat_id, format, &path).await?;
    Ok(Some(path.display().to_string()))
}

/// Asks for files and reads their chats; nothing if the person closed the dialog.
#[tauri::command]
pub(crate) async fn import_chats(window: tauri::Window, state: State<'_, App>) -> Result<Option<Imported>, AppError> {
    let (send, answer) = oneshot::channel();
    let dialog = window.dialog().file().set_parent(&window).add_filter("JSON", &["json"]);
    dialog.pick_files(move |files| drop(send.send(files)));
    let files = answer.await.ok().flatten().unwrap_or_default();
    let paths: Vec<_> = files.into_iter().filter_map(|file| file.into_path().ok()).collect();
    if paths.is_empty() {
        return Ok(None);
    }
    Ok(Some(state.get()?.import_chats(&paths).await?))
}
