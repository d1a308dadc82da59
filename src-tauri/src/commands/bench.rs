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

/// Of the report itself: one that could not be kept can still be copied.
#[tauri::command]
pub(crate) fn bench_texts(open: OpenBench) -> BenchTexts {
    crate::bench::texts(&open)
}

/// Of either kind.
#[tauri::command]
pub(crate) async fn remove_measurement(state: State<'_, App>, id: i32) -> Result<(), AppError> {
    Ok(state.get()?.store.remove_measurement(id).await?)
}
