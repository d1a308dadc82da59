import { mount } from "svelte";
import App from "./App.svelte";
import { isMac } from "./lib/keys";
import "./styles.css";
import "./controls.css";
import "./markdown.css";
import "./origin.css";

// In a browser, without the app behind it, the development server answers in its place. Left out of every build.
if (import.meta.env.DEV && !("__TAURI_INTERNALS__" in window)) await import("./dev/fake");

// On macOS the window's own buttons lie over the page.
document.documentElement.classList.toggle("mac", isMac());

mount(App, { target: document.getElementById("app")! });
