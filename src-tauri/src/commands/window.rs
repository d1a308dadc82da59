//! The window itself.

use tauri::plugin::{Builder, TauriPlugin};
use tauri::{AppHandle, DragDropEvent, Manager, Runtime, Url, Window, WindowEvent};

use super::App;

/// Keeps the only window on the app's own page: no link, drop or script can put another one in its place.
pub(crate) fn guard<R: Runtime>() -> TauriPlugin<R> {
    Builder::new("guard")
        .on_navigation(|webview, url| is_own(url, webview.config().build.dev_url.as_ref()))
        .build()
}

/// Whether an address is the app's own page, or in development that of its server.
fn is_own(url: &Url, served: Option<&Url>) -> bool {
    let is_bundled = match url.scheme() {
        "tauri" => url.host_str() == Some("localhost"),
        "http" | "https" => url.host_str() == Some("tauri.localhost"),
        _ => false,
    };
    is_bundled || (tauri::is_dev() && served.is_some_and(|served| served.origin() == url.origin()))
}

/// Brings the window to the front, wherever it was put.
pub(crate) fn show<R: Runtime>(app: &AppHandle<R>) {
    if let Some(window) = app.get_webview_window("main") {
        // A window that cannot come to the front is still there.
        let _ = window.show();
        let _ = window.unminimize();
        let _ = window.set_focus();
    }
}

/// What happens to the window from outside.
pub(crate) fn on_event<R: Runtime>(window: &Window<R>, event: &WindowEvent) {
    match event {
        WindowEvent::DragDrop(DragDropEvent::Drop { paths, .. }) => {
            if let Ok(state) = window.state::<App>().get() {
                state.note_drop(paths);
            }
        }
        // On a Mac an app outlives its window: the reply is written on, and a click on the Dock brings the window back.
        #[cfg(target_os = "macos")]
        WindowEvent::CloseRequested { api, .. } => {
            if window.hide().is_ok() {
                api.prevent_close();
            }
        }
        _ => {}
    }
}

/// The page runs in a process of its own. Where that dies, WebKitGTK leaves a blank window; on macOS the runtime reloads.
#[cfg(target_os = "linux")]
pub(crate) fn reload_when_killed(view: &webkit2gtk::WebView) {
    use webkit2gtk::WebViewExt;
    view.connect_web_process_terminated(|view, _why| view.reload());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_apps_own_page_may_fill_the_window() {
        let at = |url: &str| is_own(&Url::parse(url).unwrap(), None);
        assert!(at("tauri://localhost/"));
        assert!(at("tauri://localhost/#12"));
        assert!(at("http://tauri.localhost/index.html"));
        for other in [
            "https://example.com/",
            "http://localhost/",
            "http://tauri.localhost.example.com/",
            "tauri://example.com/",
            "file:///etc/hosts",
            "data:text/html,x",
            "about:blank",
        ] {
            assert!(!at(other), "{other}");
        }
    }
}
