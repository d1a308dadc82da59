// What the stories do and see without the page's help: the X server's windows and keys, and the history on disk.
import { spawnSync } from "node:child_process";

function python(script, env = {}) {
  const done = spawnSync("python3", ["-c", script], { env: { ...process.env, ...env }, encoding: "utf8", timeout: 20_000 });
  if (done.status !== 0) throw new Error(done.stderr);
  return done.stdout.trim();
}

/** Runs `act` with the display `d` and each large window `w` on it. */
const forWindows = (window, act) =>
  python(
    `
import ctypes
x = ctypes.CDLL("libX11.so.6")
x.XOpenDisplay.restype = ctypes.c_void_p
d = ctypes.c_void_p(x.XOpenDisplay(None))
root, parent, children, n = ctypes.c_ulong(), ctypes.c_ulong(), ctypes.POINTER(ctypes.c_ulong)(), ctypes.c_uint()
x.XQueryTree(d, ctypes.c_ulong(x.XDefaultRootWindow(d)), *map(ctypes.byref, (root, parent, children, n)))
for i in range(n.value):
    w = ctypes.c_ulong(children[i])
    g = [ctypes.c_ulong(), ctypes.c_int(), ctypes.c_int()] + [ctypes.c_uint() for _ in range(4)]
    x.XGetGeometry(d, w, *map(ctypes.byref, g))
    if g[3].value > 400:
        ${act}
x.XSync(d, 0)
`,
    { DISPLAY: window.display },
  );

/** Takes the window from the screen, as minimising does; Xvfb has no window manager for it. */
export const hide = (window) => forWindows(window, "x.XUnmapWindow(d, w)");

export const show = (window) => forWindows(window, "x.XMapWindow(d, w)");

/** Presses a key of the X server, e.g. 0xff1b for Escape. */
export const press = (window, keysym) =>
  forWindows(
    window,
    `t = ctypes.CDLL("libXtst.so.6"); c = x.XKeysymToKeycode(d, ctypes.c_ulong(${keysym})); x.XSetInputFocus(d, w, 1, ctypes.c_ulong(0)); x.XSync(d, 0); t.XTestFakeKeyEvent(d, c, 1, ctypes.c_ulong(0)); t.XTestFakeKeyEvent(d, c, 0, ctypes.c_ulong(50))`,
  );

/** Each reply in the history: its state and how many characters it has. */
export const stored = (home) =>
  JSON.parse(
    python(`
import glob, json, sqlite3
db = sqlite3.connect("file:" + glob.glob("${home.path}/data/**/history.db", recursive=True)[0] + "?mode=ro", uri=True)
print(json.dumps([dict(zip(("status", "length"), row)) for row in db.execute("SELECT status, length(content) FROM messages WHERE role = 'assistant' ORDER BY id")]))
`),
  );
