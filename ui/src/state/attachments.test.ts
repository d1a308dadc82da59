import { beforeEach, expect, test, vi } from "vitest";
import * as commands from "../lib/commands";
import { pdfText } from "../lib/pdf";
import { attach, attachedTo, attachPasted, detachAll, readingFor, stopReading } from "./attachments.svelte";
import { report } from "./view.svelte";

vi.mock("../lib/commands", () => ({ attachFiles: vi.fn(), readPdf: vi.fn(async () => new Uint8Array(1)), countTokens: vi.fn(async (text: string) => text.length) }));
vi.mock("../lib/pdf", () => ({ pdfText: vi.fn() }));
vi.mock("./view.svelte", () => ({ report: vi.fn() }));
vi.mock("./drafts.svelte", () => ({ giveBack: vi.fn(), touch: vi.fn() }));

const picked = vi.mocked(commands.attachFiles);
const read = vi.mocked(pdfText);
const told = vi.mocked(report);
const error = (message: string) => ({ kind: "input", message, hint: `mend ${message}` });

beforeEach(() => {
  detachAll(1);
  told.mockClear();
});

test("a PDF is read, counted and attached; the message waits for it", async () => {
  picked.mockResolvedValueOnce({ files: [{ name: "a.txt", text: "a", tokens: 1 }], pdfs: [{ id: 7, name: "b.pdf" }], refused: [] });
  let give: (text: string) => void = () => {};
  read.mockReturnValueOnce(new Promise((done) => (give = done)));
  const attached = attach(1);
  await vi.waitFor(() => expect(readingFor(1)).toEqual(["b.pdf"]));
  expect(attachedTo(1).map((file) => file.name)).toEqual(["a.txt"]);
  expect(readingFor(2)).toEqual([]);
  await vi.waitFor(() => expect(commands.readPdf).toHaveBeenCalledWith(7));
  give("words");
  await attached;
  expect(readingFor(1)).toEqual([]);
  expect(attachedTo(1)[1]).toEqual({ name: "b.pdf", text: "words", tokens: 5 });
  expect(told).not.toHaveBeenCalled();
});

test("files that cannot be used are named, and hold up no other", async () => {
  picked.mockResolvedValueOnce({ files: [], pdfs: [{ id: 1, name: "locked.pdf" }, { id: 2, name: "good.pdf" }], refused: [error("a.png")] });
  read.mockRejectedValueOnce(error("locked.pdf")).mockResolvedValueOnce("words");
  await attach(1);
  expect(attachedTo(1).map((file) => file.name)).toEqual(["good.pdf"]);
  expect(readingFor(1)).toEqual([]);
  expect(told.mock.calls.map(([said]) => (said as { message: string }).message)).toEqual(["a.png; locked.pdf"]);

  picked.mockResolvedValueOnce({ files: [], pdfs: [], refused: [error("b.zip")] });
  await attach(1);
  expect(told).toHaveBeenLastCalledWith(error("b.zip"));
});

test("a PDF that nobody wants any more is not read to its end, nor attached, nor complained of; the next one is read", async () => {
  picked.mockResolvedValueOnce({ files: [], pdfs: [{ id: 1, name: "long.pdf" }, { id: 2, name: "never.pdf" }, { id: 3, name: "good.pdf" }], refused: [] });
  read.mockClear();
  read.mockImplementationOnce((_, __, limits) => new Promise((_, fail) => limits!.signal!.addEventListener("abort", () => fail(limits!.signal!.reason))));
  read.mockResolvedValueOnce("words");
  const attached = attach(1);
  await vi.waitFor(() => expect(read).toHaveBeenCalledTimes(1));
  stopReading(1, "never.pdf");
  stopReading(1, "long.pdf");
  expect(readingFor(1)).toEqual(["good.pdf"]);
  await attached;
  expect(read.mock.calls.map(([name]) => name)).toEqual(["long.pdf", "good.pdf"]);
  expect(attachedTo(1).map((file) => file.name)).toEqual(["good.pdf"]);
  expect(told).not.toHaveBeenCalled();
});

test("what is pasted goes the same way: text at once, a PDF once it is read, the rest is named", async () => {
  read.mockResolvedValueOnce("words");
  await attachPasted(1, [new File(["a\r\nb"], "a.txt"), new File(["%PDF-1.7"], "b.pdf"), new File(["x"], "c.png", { type: "image/png" })]);
  expect(attachedTo(1)).toEqual([{ name: "a.txt", text: "a\nb", tokens: 3 }, { name: "b.pdf", text: "words", tokens: 5 }]);
  expect(told.mock.calls.map(([said]) => (said as { message: string }).message)).toEqual([expect.stringContaining("“c.png” is a picture")]);
});
