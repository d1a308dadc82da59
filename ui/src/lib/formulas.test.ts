// @vitest-environment jsdom
import { beforeAll, describe, expect, test } from "vitest";
import { formulas, masked } from "./formulas";
import { html } from "./html";
import { loadKatex } from "./katex";
import { show } from "./patch";
import { plainText } from "./plain";

const texs = (text: string): string[] => formulas(text, false).map((formula) => formula.tex);
const done = (raw: string): string => html({ id: 0, raw, done: true });
const open = (raw: string): string => html({ id: 0, raw, done: false });
const page = (raw: string): HTMLElement => {
  const element = document.createElement("div");
  show(element, done(raw));
  return element;
};
/** What there is besides the formulas. */
const around = (raw: string): string => {
  const element = page(raw);
  for (const formula of element.querySelectorAll(".formula")) formula.replaceWith("∎");
  return element.innerHTML.trim();
};

beforeAll(loadKatex);

describe("what is a formula", () => {
  test("the four ways to write one", () => {
    const found = formulas(String.raw`a $x$ b $$y$$ c \(z\) d \[w\]`, false);
    expect(found.map(({ tex, display }) => [tex, display])).toEqual([["x", false], ["y", true], ["z", false], ["w", true]]);
    expect(texs("$$\n\\begin{aligned}\na &= b \\\\[4pt]\n&= c\n\\end{aligned}\n$$")).toEqual(["\n\\begin{aligned}\na &= b \\\\[4pt]\n&= c\n\\end{aligned}\n"]);
    expect(texs("设$x$为\\(y\\)，则$$z$$")).toEqual(["x", "y", "z"]);
    expect(texs("an $n$-th, $x$, $5$ and $2x + 3 = 7$.")).toEqual(["n", "x", "5", "2x + 3 = 7"]);
    expect(texs("$\\text{if the case is } x$ and $\\$5$")).toEqual(["\\text{if the case is } x", "\\$5"]);
  });

  test("money, variables and words are none", () => {
    for (const text of [
      "It costs $5 and $10.", "$5-$10", "$5/$6", "between $5 and 10$", "US$5 and AU$6", "($5)($6)", "$5, $6 and $7", "$ 5 $",
      "$HOME/$USER", "echo $PATH and $HOME", "a$b$c", "$HOME is where $", "\\$x\\$", "one $ sign", "$$", "$$ $$", "$$$x$$$", "$3 million or 4$",
      "| $5 | $6 |", "arr\\[0\\]", "\\[text\\](https://a.b)", "f\\\\(x\\\\)", "- costs \\(a\n- and b\\)", "$a\nb$", "$x\n\ny$", "$$x\n\ny$$", "\\[x\n\ny\\]",
    ])
      expect(texs(text), text).toEqual([]);
  });

  test("code is none", () => {
    for (const text of ["`$x$`", "``a ` $x$``", "```\n$x$\n```", "~~~\n$$x$$\n~~~", "- a\n  ```sh\n  echo $x$\n  ```", "> ```\n> $x$\n> ```", "```\n$x$\n"])
      expect(texs(text), text).toEqual([]);
    expect(texs("`$` and $x$ and `$`")).toEqual(["x"]);
    expect(texs("```\n$a$\n```\n$x$")).toEqual(["x"]);
    expect(done("    $x$\n")).toContain("<code>$x$\n</code>");
  });

  test("a quote's marks are not part of it", () => {
    expect(texs("> $$\n> x > y\n> $$")).toEqual(["\n x > y\n "]);
    expect(around("> $$\n> x\n> $$")).toContain("<blockquote>\n<p>∎</p>");
  });
});

describe("how it is drawn", () => {
  test("as MathML with its source, and as letters that are hidden from those who listen", () => {
    const drawn = page("Let $\\sqrt{x}$ be.");
    expect(drawn.querySelector('math > semantics > annotation[encoding="application/x-tex"]')?.textContent).toBe("\\sqrt{x}");
    expect(drawn.querySelector("math msqrt")).not.toBeNull();
    expect(drawn.querySelector(".katex-html[aria-hidden=true] svg path")).not.toBeNull();
    expect(drawn.querySelector(".katex-html [style]")).not.toBeNull();
    expect(drawn.querySelector<HTMLElement>(".formula")?.dataset.source).toBe("$\\sqrt{x}$");
    expect(page("$$x$$").querySelector(".formula.display .katex-display")).not.toBeNull();
  });

  test("nothing in it is markdown", () => {
    expect(around("$a_1 * b_2 * c_3$ and *d*")).toBe("<p>∎ and <em>d</em></p>");
    expect(around("$$\na\n= b\n- c\n+ d\n> e\n# f\n$$")).toBe("<p>∎</p>");
    expect(around("| a | b |\n|---|---|\n| $|x|$ | $y$ |")).toContain("<td>∎</td><td>∎</td>");
    expect(around("1. one\n   $$\n   x\n   $$\n2. two")).toMatch(/<li>one<br>∎\s*<\/li>\s*<li>two/);
  });

  test("in the text of a link it is drawn, elsewhere in one it is as written", () => {
    expect(around("[see $x$](https://a.b/$y$)")).toBe('<p><a href="https://a.b/$y$" title="https://a.b/$y$">see ∎</a></p>');
    expect(done("![of $x$](https://a.b)")).toContain("[image: of $x$]");
    expect(done("<b>$x$</b>")).toContain("&lt;b&gt;");
  });

  test("one that KaTeX cannot read is its source", () => {
    for (const bad of ["$\\frac{$", "$\\nonsense{x}$", "$$\\begin{matrix}$$", `$${"{".repeat(3000)}$`, `$${"\\sqrt{".repeat(600)}x${"}".repeat(600)}$`, `$${"x".repeat(5000)}$`]) {
      const drawn = done(`a ${bad} b`);
      expect(drawn, bad).toContain(`<code dir="ltr">${bad.replaceAll("&", "&amp;")}</code>`);
      expect(drawn).not.toContain("katex");
    }
  });

  test("copied as text it is its source", () => {
    expect(plainText("Let $a_1 * b_2 * c$ **be**\n\n$$\nx\n$$")).toBe("Let $a_1 * b_2 * c$ be\n\n$$\nx\n$$");
  });

  test("letters kept for a program's own use are not text", () => {
    expect(done("a\ufdd00\ufdd1b $x$")).toContain("a\ufffd0\ufffdb");
    expect(masked("$x$\ufdd2", false)).toHaveLength(4);
  });
});

describe("a hostile one", () => {
  test("leads nowhere, loads nothing and gives out no HTML", () => {
    for (const tex of [
      "\\href{javascript:alert(1)}{x}", "\\url{javascript:alert(1)}", "\\htmlData{a=b}{x}", "\\htmlStyle{position:fixed}{x}", "\\htmlClass{toast}{x}",
      "\\htmlId{app}{x}", "\\includegraphics{https://a.b/c.png}", "\\text{<img src=x onerror=alert(1)>}",
    ]) {
      const drawn = page(`$${tex}$`);
      expect(drawn.querySelector("a, img, script, iframe, [href], [src], [id], [onerror], [data-a], .toast, [style*=position]"), tex).toBeNull();
      expect(drawn.querySelector("[data-source]"), tex).not.toBeNull();
    }
  });

  test("does not grow without end", () => {
    const large = page("$\\rule{99999em}{99999em}$");
    for (const part of large.querySelectorAll("[style], [width]")) {
      expect(part.getAttribute("style") ?? "").not.toMatch(/\d{3,}(\.\d+)?em/);
      expect(part.getAttribute("width") ?? "").not.toMatch(/\d{3,}em/);
    }
    for (const bomb of ["\\def\\a{xx}\\def\\b{\\a\\a}\\def\\c{\\b\\b}\\c", `${"\\def\\a#1{#1#1}"}${"\\a{".repeat(30)}x${"}".repeat(30)}`, "\\def\\a{\\a\\a}\\a"])
      expect(done(`$${bomb}$`).length, bomb).toBeLessThan(420_000);
  });
});

describe("while it is written", () => {
  test("it is text until its end, whatever stands in it, and nothing else changes", () => {
    for (const text of ["Let **a** be $x_i * \\mathbf{y}_j$ here", "So \\(a_1 * b_1\\) and", "$$\na\n= b\n- c_1 * d_1\n$$\n", "- item \\[\n  x\n  = y\n  \\]\n"]) {
      const [formula] = formulas(text, false);
      for (let end = formula!.from + 1; end < formula!.to; end += 1) {
        const drawn = open(text.slice(0, end));
        expect(drawn, text.slice(0, end)).not.toMatch(/katex|<em>|<h[12]>|<hr/);
        expect(drawn.replaceAll("\n", "").replace(/<[^>]*>/g, ""), text.slice(0, end)).toContain(text.slice(formula!.from, end).replaceAll("\n", ""));
      }
    }
  });

  test("a price never becomes one on the way", () => {
    const text = "It is $5-$10, or $5 and *not* $10.";
    for (let end = 1; end <= text.length; end += 1) expect(open(text.slice(0, end)), text.slice(0, end)).not.toContain("katex");
    expect(open(text)).toContain("<em>not</em>");
  });
});
