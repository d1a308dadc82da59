import { expect, test } from "vitest";
import { pastedFiles, readPasted } from "./pasted";

const file = (parts: BlobPart[], name = "a file.txt", type = ""): File => new File(parts, name, { type });
const units = (text: string, littleEndian: boolean): Uint8Array<ArrayBuffer> => {
  const bytes = new DataView(new ArrayBuffer(2 * text.length));
  Array.from({ length: text.length }, (_, at) => bytes.setUint16(2 * at, text.charCodeAt(at), littleEndian));
  return new Uint8Array(bytes.buffer);
};
const text = async (parts: BlobPart[]): Promise<string | null> => (await readPasted(file(parts))).text;
const refused = (what: File): Promise<{ message: string; hint: string }> =>
  readPasted(what).then(
    () => Promise.reject(new Error("it was read")),
    (error) => error,
  );

test("text is read whatever its marks", async () => {
  expect(await text(["\ufeffa;b\r\n1;2\r\n"])).toBe("a;b\n1;2\n");
  expect(await text([units("\ufeffGröße, 天気 👋", true)])).toBe("Größe, 天気 👋");
  expect(await text([units("\ufeffGröße, 天気 👋", false)])).toBe("Größe, 天気 👋");
  expect(await text([""])).toBe("");
});

test("a PDF is known by what it holds, and is still to be read", async () => {
  expect(await readPasted(file(["%PDF-1.7\n"], "b"))).toMatchObject({ name: "b", text: null, bytes: { length: 9 } });
});

test.each([
  ["a picture", file(["x"], "image.png", "image/png"), "models read text alone"],
  ["bytes", file(["a\0b"]), "not text"],
  ["letters of another code", file([new Uint8Array([0x47, 0xf6, 0xdf])]), "not text"],
  ["an office document", file([new Uint8Array([0x50, 0x4b, 3, 4, 20])]), "office"],
  ["too much", file(["a".repeat((4 << 20) + 1)]), "4 MB"],
])("what is no text is refused by name: %s", async (_, what, reason) => {
  const error = await refused(what);
  expect(error.message).toContain(`“${what.name}”`);
  expect(error.message).toContain(reason);
  expect(error.hint).not.toBe("");
});

test("a picture of the words that come with it is not meant, a picture alone is, to be told that it cannot be read", () => {
  const clipboard = (files: File[], words: string) => ({ files: files as unknown as FileList, getData: () => words });
  const [picture, notes] = [file(["x"], "image.png", "image/png"), file(["a"], "a.txt", "text/plain")];
  expect(pastedFiles(clipboard([picture], "Words"))).toEqual([]);
  expect(pastedFiles(clipboard([picture], ""))).toEqual([picture]);
  expect(pastedFiles(clipboard([notes], "a.txt"))).toEqual([notes]);
  expect(pastedFiles(null)).toEqual([]);
});
