use tauri::{State, ipc::Channel};

use super::App;
use crate::ipc::{AppError, ChatConfig, TurnEvent, TurnOptions};
use crate::turn::Listener;

/// A window that is gone does not end the turn.
fn listener(channel: Channel<TurnEvent>) -> Listener {
    Box::new(move |event| channel.send(event).is_ok())
}

/// Every failure is told in the channel, so the promise tells only that the turn is over.
#[tauri::command]
pub(crate) async fn send_message(
    state: State<'_, App>,
    chat_id: Option<i32>,
    text: String,
    options: TurnOptions,
    config: Option<ChatConfig>,
    on_event: Channel<TurnEvent>,
) -> Result<(), AppError> {
    let turns = &state.get()?.turns;
    let _told_in_the_channel = turns
        .send_with(chat_id, &text, config.as_ref(), &options, listener(on_event))
        .await;
    Ok(())
}

/// Sends another version of one of the person's messages.
#[tauri::command]
pub(crate) async fn edit_message(
    state: State<'_, App>,
    message_id: i32,
    text: String,
    options: TurnOptions,
    on_event: Channel<TurnEvent>,
) -> Result<(), AppError> {
    let turns = &state.get()?.turns;
    let _told_in_the_channel = turns.edit(message_id, &text, &options, listener(on_event)).await;
    Ok(())
}

/// Answers a message of the person that the shown branch ends with.
#[tauri::command]
pub(crate) async fn answer_message(
    state: State<'_, App>,
    message_id: i32,
    options: TurnOptions,
    on_event: Channel<TurnEvent>,
) -> Result<(), AppError> {
    let turns = &state.get()?.turns;
    let _told_in_the_channel = turns.answer(message_id, &options, listener(on_event)).await;
    Ok(())
}

/// Goes on with a reply that broke off, as if it had not.
#[tauri::command]
pub(crate) async fn continue_reply(
    state: State<'_, App>,
    message_id: i32,
    options: TurnOptions,
    on_event: Channel<TurnEvent>,
) -> Result<(), AppError> {
    let turns = &state.get()?.turns;
    let _told_in_the_channel = turns.go_on(message_id, &options, listener(on_event)).await;
    Ok(())
}

#[tauri::command]
pub(crate) async fn regenerate(
    state: State<'_, App>,
    message_id: i32,
    options: TurnOptions,
    on_event: Channel<TurnEvent>,
) -> Result<(), AppError> {
    let _told_in_the_channel = state
        .get()?
        .turns
        .regenerate(message_id, &options, listener(on_event))
        .await;
    Ok(())
}

/// The model stops thinking and answers.
#[tauri::command]
pub(crate) fn answer_now(state: State<'_, App>) -> Result<(), AppError> {
    state.get()?.turns.answer_now();
    Ok(())
}

#[tauri::command]
pub(crate) fn stop_turn(state: State<'_, App>) -> Result<(), AppError> {
    state.get()?.turns.stop();
    Ok(())
}
