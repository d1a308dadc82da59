use tauri::{State, ipc::Channel};

use super::App;
use crate::ipc::{
    AppError, BenchEvent, BenchRequest, BenchTexts, CompareEvent, CompareRequest, Comparison, Measurements, OpenBench,
};

/// Every failure is told in the channel, so the promise tells only that it is over. `stop_turn` ends it early.
#[tauri::command]
pub(crate) async fn compare(
    state: State<'_, App>,
    request: CompareRequest,
    on_event: Channel<CompareEvent>,
) -> Result<(), AppError> {
    let tell = move |event| on_event.send(event).is_ok();
    let _told_in_the_channel = state.get()?.benches.compare(&request, tell).await;
    Ok(())
}

/// As `compare`.
#[tauri::command]
pub(crate) async fn bench(
    state: State<'_, App>,
    request: BenchRequest,
    on_event: Channel<BenchEvent>,
) -> Result<(), AppError> {
    let tell = move |event| on_event.send(event).is_ok();
    let _told_in_the_channel = state.get()?.benches.bench(&request, tell).await;
    Ok(())
}

/// The history of both kinds.
#[tauri::command]
pub(crate) async fn list_measurements(state: State<'_, App>) -> Result<Measurements, AppError> {
    state.get()?.benches.history().await
}

#[tauri::command]
pub(crate) async fn open_comparison(state: State<'_, App>, id: i32) -> Result<Comparison, AppError> {
    Ok(state.get()?.store.comparison(id).await?)
}

#[tauri::command]
pub(crate) async fn open_bench(state: State<'_, App>, id: i32) -> Result<OpenBench, AppError> {
    state.get()?.benches.open_bench(id).await
}

#[tauri::command]
pub(crate) async fn bench_texts(state: State<'_, App>, id: i32) -> Result<BenchTexts, AppError> {
    state.get()?.benches.texts(id).await
}
