import { beforeAll, expect, test, vi } from "vitest";
import { pdfText } from "./pdf";
import { library } from "./pdfjs";

// Here there is no window that starts a worker or serves files: PDF.js runs beside the test, with its tables in the code.
vi.mock("./pdfjs", () => {
  const maps = import.meta.glob<string>("../../../node_modules/pdfjs-dist/cmaps/*.bcmap", { query: "?inline", import: "default" });
  return {
    library: vi.fn(() => import("pdfjs-dist/legacy/build/pdf.mjs")),
    BinaryData: class {
      async fetch({ filename }: { filename: string }): Promise<Uint8Array> {
        const url = await maps[`../../../node_modules/pdfjs-dist/cmaps/${filename}`]!();
        return new Uint8Array(await (await fetch(url)).arrayBuffer());
      }
    },
  };
});
beforeAll(() => import("pdfjs-dist/legacy/build/pdf.worker.mjs" as string));

const bytes = (text: string): Uint8Array => Uint8Array.from(text, (c) => c.charCodeAt(0));

/** A PDF of these objects, of which the first is the catalogue; the table of their places is right. */
function pdf(objects: string[], trailer = ""): Uint8Array {
  let text = "%PDF-1.7\n";
  const places = objects.map((object, index) => {
    const at = text.length;
    text += `${index + 1} 0 obj\n${object}\nendobj\n`;
    return at;
  });
  const table = places.map((at) => `${String(at).padStart(10, "0")} 00000 n \n`).join("");
  text += `xref\n0 ${objects.length + 1}\n0000000000 65535 f \n${table}trailer\n<</Size ${objects.length + 1} /Root 1 0 R ${trailer}>>\n`;
  return bytes(`${text}startxref\n${text.lastIndexOf("xref\n0")}\n%%EOF\n`);
}

const stream = (data: string, more = ""): string => `<</Length ${data.length} ${more}>>\nstream\n${data}\nendstream`;

/** Pages with these commands, in one font. */
function document(pages: string[], font = "<</Type /Font /Subtype /Type1 /BaseFont /Helvetica>>", more: string[] = [], trailer = ""): Uint8Array {
  const first = 4;
  const kids = pages.map((_, index) => `${first + 2 * index} 0 R`).join(" ");
  const objects = pages.flatMap((commands, index) => [
    `<</Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Resources <</Font <</F 3 0 R>>>> /Contents ${first + 2 * index + 1} 0 R>>`,
    stream(commands),
  ]);
  return pdf(["<</Type /Catalog /Pages 2 0 R>>", `<</Type /Pages /Count ${pages.length} /Kids [${kids}]>>`, font, ...objects, ...more], trailer);
}

const line = (text: string, y = 700): string => `BT /F 12 Tf 50 ${y} Td (${text}) Tj ET`;
const PICTURE = "q 100 0 0 100 50 50 cm BI /W 1 /H 1 /BPC 8 /CS /G ID \x80 EI Q";
const refused = (name: string, data: Uint8Array, longest?: number): Promise<{ kind: string; message: string; hint: string }> =>
  pdfText(name, data, { longest }).then(
    (text) => Promise.reject(new Error(`it was read: ${text}`)),
    (error) => error,
  );

test("the text of each page, line by line, under its number", async () => {
  const text = await pdfText("two.pdf", document([`${line("A stack gives back")}\n${line("what it took last.", 680)}`, line("A queue does not.")]));
  expect(text).toBe("--- Page 1 of 2 ---\nA stack gives back\nwhat it took last.\n\n--- Page 2 of 2 ---\nA queue does not.\n");
});

test("letters of an East Asian font without a table of its own", async () => {
  const font = "<</Type /Font /Subtype /Type0 /BaseFont /HeiseiMin-W3 /Encoding /UniJIS-UTF16-H /DescendantFonts [6 0 R]>>";
  const inner =
    "<</Type /Font /Subtype /CIDFontType0 /BaseFont /HeiseiMin-W3 /CIDSystemInfo <</Registry (Adobe) /Ordering (Japan1) /Supplement 6>> /FontDescriptor 7 0 R>>";
  const descriptor =
    "<</Type /FontDescriptor /FontName /HeiseiMin-W3 /Flags 4 /FontBBox [0 -200 1000 900] /ItalicAngle 0 /Ascent 800 /Descent -200 /CapHeight 700 /StemV 80>>";
  const words = "天気は晴れ";
  const hex = Array.from(words, (c) => c.charCodeAt(0).toString(16).padStart(4, "0")).join("");
  expect(await pdfText("天気.pdf", document([`BT /F 12 Tf 50 700 Td <${hex}> Tj ET`], font, [inner, descriptor]))).toContain(words);
});

test("a page without text says so, and a file of nothing but pictures is refused", async () => {
  expect(await pdfText("half.pdf", document([PICTURE, line("Words")]))).toContain("--- Page 1 of 2 ---\n(no text on this page)\n");
  const error = await refused("scan.pdf", document([PICTURE, PICTURE]));
  expect(error.message).toContain("“scan.pdf”");
  expect(error.message).toContain("no text");
  expect(error.hint).toContain("OCR");
});

test("a file that is locked with a password is refused by name", async () => {
  const O = "00".repeat(32);
  const lock = `<</Filter /Standard /V 1 /R 2 /Length 40 /P -4 /O <${O}> /U <${"11".repeat(32)}>>>`;
  const id = "/Encrypt 6 0 R /ID [<00112233445566778899aabbccddeeff> <00112233445566778899aabbccddeeff>]";
  const error = await refused("locked.pdf", document([line("Secret")], undefined, [lock], id));
  expect(error.message).toBe("“locked.pdf” is locked with a password.");
  expect(error.hint).toContain("without the password");
});

test("a damaged file is mended where that can be, and refused by name where not", async () => {
  const whole = document([line("Still here")]);
  // Its table of places is cut off.
  expect(await pdfText("cut.pdf", whole.slice(0, whole.lastIndexOf(120)))).toContain("Still here");
  for (const data of [bytes("%PDF-1.7\nand nothing else"), new Uint8Array(0), bytes("%PDF-1.7\n" + "\xff\x00<<[[((".repeat(5000)), whole.slice(0, 60)]) {
    const error = await refused("bad.pdf", data);
    expect(error.kind).toBe("input");
    expect(error.message).toContain("“bad.pdf”");
    expect(error.hint).not.toBe("");
  }
});

test("text without end is refused, not read to its end", async () => {
  // So small that all of it lies on the page.
  const page = line("lorem ipsum dolor sit amet ".repeat(400)).replace("12 Tf", "0.001 Tf");
  const error = await refused("endless.pdf", document(Array.from({ length: 50 }, () => page)), 100_000);
  expect(error.message).toContain("more than 4 MB");
});

test("a file has so much time, not each of its pages", async () => {
  const read = vi.fn(() => new Promise((done) => setTimeout(() => done({ streamTextContent: () => new ReadableStream({ start: (c) => c.close() }), cleanup: () => {} }), 20)));
  const getDocument = () => ({ promise: Promise.resolve({ numPages: 1000, getPage: read }), destroy: async () => {} });
  vi.mocked(library).mockResolvedValueOnce({ getDocument } as never);
  const error = await pdfText("slow.pdf", new Uint8Array(), { patienceMs: 100 }).then(
    () => Promise.reject(new Error("it was read")),
    (error) => error,
  );
  expect(error.message).toContain("half a minute");
  const pages = read.mock.calls.length;
  await new Promise((done) => setTimeout(done, 100));
  expect(read.mock.calls.length - pages, "pages that are read for nobody").toBeLessThan(2);
});

test("reading ends when nobody wants it any more", async () => {
  const end = new AbortController();
  const text = pdfText("long.pdf", document([line("Words")]), { signal: end.signal });
  end.abort();
  await expect(text).rejects.toBe(end.signal.reason);
});
