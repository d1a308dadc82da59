// What a reply may hold, shown by the real window: formulas, tables, code, and the text of PDFs.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { QUESTION, ready, send } from "./chatting.mjs";
import { story, until } from "./window.mjs";

// The built-in model writes no LaTeX: its reply becomes this one while the window is closed.
const REPLY = String.raw`The area is $\pi r^2$, for $5 or $10.

$$
\begin{aligned}
a &= \int_0^1 \frac{1}{\sqrt{1-t^2}}\,dt \\
  &= \frac{\pi}{2}
\end{aligned}
$$

| what | value |
|---|--:|
| $|x|$ | **2** |

${"```"}js
const price = "$x$";
${"```"}

A hostile one: $\href{javascript:alert(1)}{x}$, $\rule{9999em}{9999em}$, and one that is no formula: $\frac{$.`;
const ASKED = `File: notes.pdf\n${"```"}\n--- Page 1 of 1 ---\nA stack gives back last what it took first.\n${"```"}\n\nWhat is in it?`;

/** Takes the database, the role and the text. */
const WRITE = `import sqlite3, sys
with sqlite3.connect(sys.argv[1]) as db:
    db.execute("UPDATE messages SET content = ? WHERE role = ?", (sys.argv[3], sys.argv[2]))`;

function rewrite(home, role, text) {
  const written = spawnSync("python3", ["-c", WRITE, join(home.path, "data/chat.slipstream.app/history.db"), role, text]);
  assert.equal(written.status, 0, String(written.stderr));
}

/** A PDF of one page with these words. */
function pdf(words) {
  const commands = `BT /F 12 Tf 50 700 Td (${words}) Tj ET`;
  const objects = [
    "<</Type /Catalog /Pages 2 0 R>>",
    "<</Type /Pages /Count 1 /Kids [4 0 R]>>",
    "<</Type /Font /Subtype /Type1 /BaseFont /Helvetica>>",
    "<</Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Resources <</Font <</F 3 0 R>>>> /Contents 5 0 R>>",
    `<</Length ${commands.length}>>\nstream\n${commands}\nendstream`,
  ];
  // Without a table of places: PDF.js finds the objects itself.
  return `%PDF-1.7\n${objects.map((object, at) => `${at + 1} 0 obj\n${object}\nendobj\n`).join("")}trailer\n<</Root 1 0 R>>\n%%EOF\n`;
}

/** What the window's own code makes of a file: the dialog in which a person picks one is not the window's. */
async function read(window, name, bytes) {
  const assets = resolve(import.meta.dirname, "../../ui/dist/assets");
  const codes = readdirSync(assets).filter((file) => /^pdf-.*\.js$/.test(file));
  return window.browser.executeAsync(
    (codes, name, bytes, done) => {
      void (async () => {
        for (const code of codes) {
          const { pdfText } = await import(new URL(`/assets/${code}`, location.href).href);
          if (pdfText) return pdfText(name, Uint8Array.from(bytes, (c) => c.charCodeAt(0)));
        }
        return "nothing reads PDFs";
      })().then(done, (error) => done(`${error.message} ${error.hint}`));
    },
    codes,
    name,
    bytes,
  );
}

story("a reply with formulas, a table and code is drawn, and a PDF is read", async (open, home) => {
  let window = await open();
  await ready(window);
  await send(window, QUESTION);
  await until("the reply", async () => (await (await window.at("message-assistant")).getAttribute("data-status").catch(() => "")) === "complete");
  await window.close();
  rewrite(home, "assistant", REPLY);
  rewrite(home, "user", ASKED);

  window = await open();
  await ready(window);
  await window.click("chat-item");
  const seen = await until("the formulas", () =>
    window.browser.execute(() => {
      const reply = document.querySelector('[data-testid="message-assistant"]');
      const drawn = reply?.querySelectorAll(".katex") ?? [];
      if (drawn.length < 4) return undefined;
      const block = reply.querySelector(".markdown");
      return {
        // Its height is given by a style, which the window's rules must let through.
        strut: drawn[0].querySelector(".katex-strut").getBoundingClientRect().height,
        math: reply.querySelectorAll("math annotation").length,
        links: reply.querySelectorAll("a").length,
        code: reply.querySelector("pre code").textContent,
        prices: block.firstElementChild.textContent.includes("for $5 or $10."),
        broken: [...reply.querySelectorAll(".formula > code")].map((code) => code.textContent),
        wide: document.documentElement.scrollWidth > innerWidth,
        file: document.querySelector('[data-testid="file"]')?.textContent,
      };
    }),
  );
  assert.ok(seen.strut > 8, `a formula is ${seen.strut} high`);
  assert.ok(seen.math >= 4);
  assert.deepEqual({ links: seen.links, prices: seen.prices, wide: seen.wide }, { links: 0, prices: true, wide: false });
  assert.match(seen.code, /const price = "\$x\$";/);
  assert.deepEqual(seen.broken, ["$\\frac{$"]);
  assert.match(seen.file, /notes\.pdf/);
  // The letters of formulas are files of the app.
  await until("their letters", () => window.browser.execute(() => [...document.fonts].some((font) => font.family.includes("KaTeX") && font.status === "loaded")));
  window.screenshot("formulas");

  assert.equal(await read(window, "words.pdf", pdf("A queue gives back first what it took first.")), "--- Page 1 of 1 ---\nA queue gives back first what it took first.\n");
  assert.match(await read(window, "bad.pdf", "%PDF-1.7 and nothing else"), /“bad\.pdf” is damaged.*save a new copy/);
});
