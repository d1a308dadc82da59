// What a person does with many chats, told to the real window and the built-in model.
import assert from "node:assert/strict";
import { LONG, QUESTION, ready, send } from "./chatting.mjs";
import { story, until } from "./window.mjs";

const OTHER = "What is 12 + 30?";

const texts = async (window, id) => (await window.all(id)).map((element) => element.getText());

/** The text of the last reply, once there are `count` and it has this status. */
const reply = (window, count, status = "complete") =>
  until(`reply ${count} ${status}`, async () => {
    const replies = await window.all("message-assistant");
    const last = replies[(await replies.length) - 1];
    // The list may be drawn anew between two looks at it.
    if (!last || (await replies.length) !== count || (await last.getAttribute("data-status").catch(() => "")) !== status) return undefined;
    return (await last.$('[data-testid="message-text"]').getText().catch(() => "")) || undefined;
  });

/** Picks from the menu of the chat whose title has this word. */
async function pick(window, word, id) {
  const item = await until(`the chat ${word}`, async () => {
    for (const item of await window.all("chat-item")) if ((await item.getText()).includes(word)) return item;
    return undefined;
  });
  await item.moveTo();
  await (await item.$('[data-testid="chat-menu"]')).click();
  await window.click(id);
}

story("a message is edited, and both versions are kept and found", async (open) => {
  let window = await open();
  await ready(window);
  await send(window, QUESTION);
  const first = await reply(window, 1);
  assert.match(first, /France is/);

  await window.browser.keys(["Control", "e"]);
  const field = await window.at("edit-input");
  await field.waitForExist();
  assert.equal(await field.getValue(), QUESTION);
  window.screenshot("editing");
  await field.setValue(OTHER);
  await window.browser.keys("Enter");
  await until("the other answer", async () => (await texts(window, "message-text").catch(() => [""]))[0] === OTHER);
  const second = await reply(window, 1);
  assert.notEqual(second, first);
  assert.equal(await window.text("version"), "2/2");
  window.screenshot("versions");

  await (await window.at("message-user")).moveTo();
  await window.click("version-before");
  await until("the first version", async () => (await texts(window, "message-text").catch(() => [""]))[0] === QUESTION);
  assert.equal(await reply(window, 1), first);

  // Found on the branch that is not shown, also after a restart.
  await window.close();
  window = await open();
  await ready(window);
  await window.browser.keys(["Control", "Shift", "f"]);
  await (await window.at("chat-filter")).setValue("12 + 30");
  await window.click("search-hit");
  await until("the found version", async () => (await texts(window, "message-text").catch(() => [""]))[0] === OTHER);
  await until("the words marked", async () => {
    const [marked, selected] = await window.browser.execute(() => [
      [...(globalThis.CSS?.highlights?.get("found-now") ?? [])].map(String).join(),
      String(getSelection()),
    ]);
    return marked === "12" || selected === "12";
  });
  window.screenshot("search");
});

story("a deleted chat comes back, and a pinned one stays at the top", async (open) => {
  const window = await open();
  await ready(window);
  await send(window, QUESTION);
  await reply(window, 1);
  await window.browser.keys(["Control", "n"]);
  await until("an empty chat", async () => (await (await window.all("message-assistant")).length) === 0);
  await send(window, OTHER);
  await reply(window, 1);

  await pick(window, "France", "chat-pin");
  await until("it at the top", async () => (await texts(window, "chat-item"))[0]?.includes("France"));
  window.screenshot("pinned");

  await pick(window, "12", "chat-delete");
  await until("one chat", async () => (await (await window.all("chat-item")).length) === 1);
  window.screenshot("deleted");
  await window.click("undo");
  await until("both chats", async () => (await (await window.all("chat-item")).length) === 2);

  await window.click("open-chat-settings");
  await (await window.at("system-prompt")).setValue("Answer in one word.");
  await window.click("own-options");
  window.screenshot("chat-settings");
  await window.browser.keys("Escape");

  await window.browser.keys(["Control", "k"]);
  await (await window.at("switcher-input")).setValue("12");
  window.screenshot("switcher");
  await window.browser.keys("Enter");
  await until("the chat", async () => (await window.text("chat-title")).includes("12"));
  assert.equal((await texts(window, "message-text"))[0], OTHER);

  await window.browser.keys(["Control", "f"]);
  await (await window.at("find-input")).setValue("12");
  await until("a match", async () => /^1 of \d+$/.test(await window.text("find-count")));
  window.screenshot("find");
});

story("a stopped reply goes on, and a message waits for its end", async (open) => {
  const window = await open();
  await ready(window);
  await send(window, LONG);
  await until("some text", async () => (await texts(window, "message-text").catch(() => []))[1]?.length > 20);
  await window.click("stop");
  const stopped = await reply(window, 1, "stopped");
  await window.click("continue");
  const whole = await reply(window, 1);
  assert.ok(whole.length > stopped.length && whole.startsWith(stopped.slice(0, 20)), whole);
  await window.click("message-menu");
  const item = await window.at("origin-toggle");
  await item.waitForDisplayed();
  assert.ok((await item.getSize("height")) < 60, "a menu is as high as its items");
  window.screenshot("menu");
  await item.click();
  await (await window.at("origin")).waitForExist();
  window.screenshot("origin");
  await window.click("message-menu");
  await window.click("origin-toggle");

  await send(window, LONG);
  await until("a second reply", async () => (await (await window.all("message-assistant")).length) === 2);
  await (await window.at("composer-input")).setValue(QUESTION);
  await window.browser.keys("Enter");
  assert.match(await reply(window, 3), /France is/);
});

story("a version is written with other settings, Enter may be a new line, and what is removed for good is gone", async (open) => {
  let window = await open();
  await ready(window);
  await send(window, QUESTION);
  const first = await reply(window, 1);
  await window.click("message-menu");
  await window.click("message-again");
  await (await window.at("again-speculation")).selectByAttribute("value", "off");
  await (await (await window.at("again-sheet")).$('[data-testid="max-tokens"]')).setValue("2");
  window.screenshot("again");
  await window.click("again-write");
  const short = await reply(window, 1, "length");
  assert.ok(short.length < first.length, short);
  assert.equal(await window.text("version"), "2/2");

  await window.browser.keys(["Control", ","]);
  await window.click("setting-enter");
  await window.browser.keys("Escape");
  const field = await window.at("composer-input");
  await until("the field with the focus", async () => field.isFocused());
  await window.browser.keys("What is");
  await window.browser.keys("Enter");
  await window.browser.keys("12 + 30?");
  assert.equal(await field.getValue(), "What is\n12 + 30?");
  assert.equal(await (await window.all("message-user")).length, 1);
  await window.browser.keys(["Control", "Enter"]);
  await reply(window, 2);

  // What is not sent outlives the window, a long text that was pasted too.
  await window.browser.execute(() => {
    const data = new DataTransfer();
    data.setData("text/plain", "long ".repeat(10_000));
    document.querySelector("[data-composer]").dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true }));
  });
  await field.setValue("not sent");
  await until("the pasted file", async () => (await window.text("file")).includes("pasted text.txt"));
  await until("the model's own count", async () => /\+ \d/.test(await window.text("context-usage")));
  await window.browser.pause(900);
  await window.kill();
  window = await open();
  await ready(window);
  await (await window.at("chat-item")).click();
  await until("the draft", async () => (await (await window.at("composer-input")).getValue()) === "not sent");
  assert.match(await window.text("file"), /pasted text\.txt/);
  window.screenshot("draft");

  for (const wanted of ["delete this", "deleted"]) {
    await window.browser.keys(["Control", "k"]);
    await until("the field with the focus", async () => (await window.at("switcher-input")).isFocused().catch(() => false));
    await window.browser.keys(wanted);
    await window.browser.keys("Enter");
    await until("it done", async () => (wanted === "deleted" ? (await window.at("deleted-chat")).isExisting() : (await (await window.all("chat-item")).length) === 0));
  }
  window.screenshot("deleted-chats");
  await window.click("deleted-purge");
  await window.click("confirm-deleted-yes");
  await (await window.at("deleted-none")).waitForExist();
});
