//! The window itself.

use webkit2gtk::{WebView, WebViewExt};

/// The page runs in a process of its own. Where that dies, WebKitGTK leaves a blank window; on macOS the runtime reloads.
pub(crate) fn reload_when_killed(view: &WebView) {
    view.connect_web_process_terminated(|view, _why| view.reload());
}
