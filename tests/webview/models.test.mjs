// What a person does to get a model, told to the real window and a hub on loopback.
import assert from "node:assert/strict";
import { cpSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import { startHub } from "./hub.mjs";
import { story, until } from "./window.mjs";

const builtin = resolve(import.meta.dirname, "../../assets/builtin");
const golden = resolve(import.meta.dirname, "../golden");
const TARGET = "demo/Tiny-4bit";
const HEAD = "demo/Tiny-MTP-4bit";
const WEIGHTS = statSync(join(builtin, "target/model.safetensors")).size;
const HEAD_WEIGHTS = statSync(join(builtin, "drafter/model.safetensors")).size;

const ready = (window, name = "") =>
  until(`a loaded model ${name}`, async () => {
    const line = await window.at("model-line");
    return (await line.getAttribute("data-state")) === "ready" && (await line.getText()).includes(name);
  });

async function openModels(window, tab) {
  await window.click("open-models");
  await window.click(`models-${tab}`);
}

/** The first download: its phase and its line of words. */
async function download(window) {
  const item = await window.at("download");
  if (!(await item.isExisting())) return undefined;
  // One that is over has no bar, and asking a bar that is not there waits for it.
  const bar = await item.$('[role="progressbar"]');
  return {
    phase: await item.getAttribute("data-phase"),
    line: await (await item.$('[data-testid="download-line"]')).getText(),
    share: (await bar.isExisting()) ? Number(await bar.getAttribute("aria-valuenow").catch(() => 0)) : 0,
  };
}

const seen = (window, phase) =>
  until(`a download that is ${phase}`, async () => {
    // The list may be drawn anew between two looks at it.
    const now = await download(window).catch(() => undefined);
    return now?.phase === phase && now;
  });

/** Asks for the pair by its repositories and looks at what would be fetched. */
async function lookInside(window) {
  await openModels(window, "get");
  await (await window.at("hub-search")).setValue(TARGET);
  await (await (await window.at("model-sheet")).$("details summary")).click();
  await (await window.at("hub-drafter")).setValue(HEAD);
  await window.click("hub-look");
  await (await window.at("plan-sum")).waitForExist();
}

story("a pair is picked, downloaded, interrupted, resumed and chatted with", async (open, home) => {
  const hub = await startHub({ [TARGET]: join(builtin, "target"), [HEAD]: join(builtin, "drafter") });
  try {
    home.env = { HF_ENDPOINT: hub.url };
    let window = await open();
    await ready(window);
    await lookInside(window);
    assert.match(await window.text("plan-sum"), /2[67] MB to download/);
    assert.match(await window.text("plan"), /Tiny-4bit[\s\S]*Tiny-MTP-4bit/);
    window.screenshot("models-plan");

    // Held at three quarters of the model's weights; the head is whole by then.
    const held = Math.floor(WEIGHTS * 0.75);
    await hub.hold(held);
    await window.click("plan-start");
    await until("three quarters", async () => ((await download(window).catch(() => undefined))?.share ?? 0) >= 75);
    window.screenshot("models-downloading");

    await window.browser.refresh();
    await (await window.at("open-models")).waitForClickable();
    await openModels(window, "here");
    const again = await download(window);
    assert.ok(again && ["transferring", "waiting"].includes(again.phase), `after a reload: ${JSON.stringify(again)}`);
    // How far it is, is written down every two seconds.
    await new Promise((done) => setTimeout(done, 3000));
    await window.kill();

    await hub.free();
    const before = await hub.served();
    window = await open();
    await ready(window);
    await openModels(window, "here");
    assert.match((await seen(window, "interrupted")).line, /closed at 2\d of 27 MB/);
    window.screenshot("models-interrupted");
    await window.click("download-resume");
    await ready(window, "Tiny-4bit");
    await seen(window, "done");
    const again_served = (await hub.served()) - before;
    const most = WEIGHTS - held + 512 * 1024;
    assert.ok(again_served <= most, `${again_served} bytes were fetched after the kill, ${most} at most were missing`);
    window.screenshot("models-downloaded");

    await window.browser.keys("Escape");
    const field = await window.at("composer-input");
    await field.waitForEnabled();
    // Whether drafts pay is the machine's affair: asked for, they are made.
    await (await window.at("speculation")).selectByAttribute("value", "3");
    await field.setValue("What is the capital of France?");
    await window.click("send");
    const reply = await window.at("message-assistant");
    await reply.waitForExist();
    await until("an answer", async () => /capital of France is/.test(await reply.getText().catch(() => "")));
    const figures = await until("figures", async () => {
      const text = await window.text("live-line").catch(() => "");
      return /accepted/.test(text) && text;
    });
    assert.match(figures.replaceAll(/\s+/g, " "), /tok\/round/, "the downloaded head drafts");
    window.screenshot("models-chat");
  } finally {
    hub.stop();
  }
});

story("a download is paused, resumed and cancelled, and what came is kept", async (open, home) => {
  const hub = await startHub({ [TARGET]: join(builtin, "target"), [HEAD]: join(builtin, "drafter") });
  try {
    home.env = { HF_ENDPOINT: hub.url };
    const window = await open();
    await ready(window);
    await lookInside(window);
    await hub.hold(Math.floor(HEAD_WEIGHTS / 2));
    await window.click("plan-start-only");
    await until("a tenth", async () => ((await download(window).catch(() => undefined))?.share ?? 0) >= 10);
    await window.click("download-pause");
    await seen(window, "paused");
    await window.click("download-resume");
    await until("it runs", async () => ["transferring", "waiting", "planning"].includes((await download(window).catch(() => undefined))?.phase));
    await window.click("download-cancel");
    assert.match(await window.text("download-kept"), /cancelled\. .*MB are kept/);
    assert.equal(await download(window), undefined);
    await window.click("models-here");
    await (await window.at("incomplete-list")).waitForExist();
    window.screenshot("models-cancelled");
  } finally {
    hub.stop();
  }
});

story("of a large model only the draft head is fetched", async (open, home) => {
  const hub = await startHub({ "demo/Large": join(golden, "qwen3_5/hf") });
  try {
    home.env = { HF_ENDPOINT: hub.url };
    const window = await open();
    await ready(window);
    await openModels(window, "get");
    await (await window.at("hub-search")).setValue("demo/Large");
    await (await (await window.at("model-sheet")).$("details summary")).click();
    await window.click("hub-head-only");
    await window.click("hub-look");
    await (await window.at("plan-head")).waitForExist();
    assert.match(await window.text("plan-head"), /Only the MTP head: \d+ kB of 1\.2 MB/);
    assert.ok(!(await (await window.at("plan-start")).isExisting()), "a head is offered to chat with");
    window.screenshot("models-head-plan");
    await window.click("plan-start-only");
    assert.match((await seen(window, "done")).line, /A draft head, complete and verified/);
    assert.ok((await hub.served()) < statSync(join(golden, "qwen3_5/hf/model.safetensors")).size, "more than the head was fetched");
    await window.click("models-here");
    await until("the head in its list", async () => /demo\/Large/.test(await window.text("head-list").catch(() => "")));
  } finally {
    hub.stop();
  }
});

story("a repository that is not there says so, and there is a way out", async (open, home) => {
  const hub = await startHub({});
  try {
    home.env = { HF_ENDPOINT: hub.url };
    const window = await open();
    await ready(window);
    await openModels(window, "get");
    await (await window.at("hub-search")).setValue("demo/Nothing");
    await window.click("hub-look");
    assert.ok((await window.text("error-message")).includes("demo/Nothing"));
    assert.ok((await window.text("error-hint")).length > 10);
    await (await window.at("retry")).waitForClickable();
    window.screenshot("models-not-found");
  } finally {
    hub.stop();
  }
});

story("models in the cache are listed by what they are, and a deleted one is gone", async (open, home) => {
  const snapshot = (repo) => join(home.path, "huggingface/hub", `models--${repo.replace("/", "--")}`, "snapshots", "0".repeat(40));
  cpSync(join(builtin, "target"), snapshot(TARGET), { recursive: true });
  cpSync(join(builtin, "drafter"), snapshot(HEAD), { recursive: true });
  const window = await open();
  await ready(window);
  await openModels(window, "here");
  const role = async (id) => (await (await window.browser.$(`[data-id="${id}"]`)).getAttribute("data-role"));
  await (await window.browser.$(`[data-id="${snapshot(TARGET)}"]`)).waitForExist();
  assert.equal(await role(snapshot(TARGET)), "target");
  assert.equal(await role(snapshot(HEAD)), "drafter");
  const head = await window.browser.$(`[data-id="${snapshot(HEAD)}"]`);
  assert.ok(!(await (await head.$('[data-testid="model-card-load"]')).isExisting()), "a head is offered as a chat model");
  window.screenshot("models-local");

  await (await head.$('[data-testid="model-delete"]')).click();
  await window.click("delete-ask-yes");
  await until("the head is gone", async () => !(await (await window.browser.$(`[data-id="${snapshot(HEAD)}"]`)).isExisting()));
});
