//! Words about the settings and the first start.

import type { Row, Section } from "../../lib/settings";

/** One setting: its name, what is said of it, and words that it is looked for by besides. */
interface Words {
  name: string;
  note: string;
  also: string;
}

export const settings = {
  settings: {
    title: "Settings",
    system: "System",
    light: "Light",
    dark: "Dark",
    saving: "Saving…",
    saved: "Saved",
    failed: "Not saved",
    search: "Search settings",
    searchLabel: "Search settings",
    contents: "Sections",
    none: (query: string) => `No settings match “${query}”.`,
    found: (n: string) => `${n} found`,
    sections: {
      appearance: "Appearance",
      replies: "Replies",
      speculation: "Speculation",
      models: "Models and memory",
      token: "Hugging Face access",
      chats: "Chats",
      data: "Data and reset",
    } satisfies Record<Section, string>,
    rows: {
      theme: { name: "Theme", note: "", also: "colours light dark night mode" },
      language: { name: "Language", note: "For the window. Errors and notes on speculation are in English.", also: "english translation locale" },
      sidebar: { name: "Show the sidebar", note: "", also: "chats list panel" },
      sampling: { name: "Defaults for all replies", note: "Used for every message from now on.", also: "temperature top-p top-k min-p seed thinking length tokens sampling" },
      enter: { name: "Enter sends the message", note: "", also: "return key new line keyboard" },
      drafts: {
        name: "Drafts per round",
        note: "Auto drafts as many tokens as pay off on this computer, and none where plain decoding is faster.",
        also: "speculation mtp depth block size off auto speed",
      },
      exactness: { name: "Exactness", note: "", also: "exact fast speculation text" },
      kv: {
        name: "Key-value cache",
        note: "Packed, the memory of a long conversation shrinks to about a half or a quarter. Packing rounds values, so the text differs from that without it, and is still the same with speculation on and off. Takes effect the next time a model is loaded.",
        also: "cache kv bits quantized packed memory",
      },
      folders: { name: "Library folders", note: "", also: "models disk path cache" },
      memory: {
        name: "Memory limit (GB)",
        note: "A model that needs more is marked as too large and never recommended, but can still be loaded. From the next load on, MLX, which does the computing, is told to stay within this limit: beyond it, memory is released at once and work waits, which is slower, but nothing fails.",
        also: "ram size fits automatic gigabytes",
      },
      token: { name: "Access token", note: "", also: "hugging face hf licence private gated login" },
      files: { name: "Export and import", note: "", also: "export all backup markdown json html chatgpt open webui import" },
      purge: { name: "Deleted chats", note: "Deleted chats are kept for 30 days. Until then they can be restored.", also: "purge trash remove undo" },
      data: { name: "Data folder", note: "Chats, settings, drafts and measurements. Models are kept elsewhere.", also: "path database location move disk history" },
      reset: { name: "Reset the settings", note: "", also: "defaults factory undo" },
    } satisfies Record<Row, Words>,
    automatic: "automatic",
    limitInvalid: "Enter a number from 0.5 to 100,000, or leave it empty for automatic",
    kv: { plain: "Not packed", eight: "Packed in 8 bits", four: "Packed in 4 bits" },
    kvNow: { plain: "The loaded model does not pack it.", eight: "The loaded model packs it in 8 bits.", four: "The loaded model packs it in 4 bits." },
    reload: "Reload the model now",
    deleted: (n: string) => `${n} can be restored.`,
    enterNote: (mod: string) => `Otherwise, Enter inserts a new line and ${mod} sends.`,
    purge: "Remove for good…",
    openFolder: "Open",
    folderChosen: (variable: string) => `Set by ${variable}.`,
    move: (variable: string) => `To keep it elsewhere: quit Slipstream, move the folder, and set the environment variable ${variable} to its new place before Slipstream starts.`,
    resetAsk:
      "Theme, language, sidebar, replies, speculation, key-value cache and memory limit go back to their defaults. Chats, drafts, presets, instructions, folders, the token, downloads and the loaded model are kept.",
    resetButton: "Reset…",
    reset: "Reset",
    keep: "Cancel",
    wasReset: "The settings are back to their defaults.",
    undo: "Undo",
  },

  welcome: {
    title: "What would you like to know?",
    running: (model: string) => `${model} runs on this computer. Nothing you write leaves it.`,
    intro: "How it gets faster",
    lines: [
      "A small head, trained with the model, drafts a few tokens ahead: multi-token prediction, or MTP.",
      "The model checks the drafts in one pass and keeps those that it would have written itself: same words, fewer passes.",
      "The line under each reply shows what that gained. Click it for the details.",
    ],
    offer: {
      get: (name: string) => `${name} is the largest pair of model and head that fits this computer’s memory.`,
      here: (name: string) => `${name}, the largest pair that fits this computer’s memory, is here already.`,
      none: "None of the pairs that Slipstream knows fits this computer’s memory, so none is offered. The built-in model runs all the same.",
      limited: "No pair fits the memory limit that you set.",
      unknown: "This computer’s memory cannot be read, so no pair is offered. All of them are under Models.",
      full: (name: string, need: string) => `${name} would fit in memory, but not on the disk: it needs ${need}.`,
      offline: (name: string) => `${name} would fit this computer. Slipstream is set to offline, so nothing is downloaded.`,
    },
    get: (size: string) => `Review the download: ${size}`,
    getUnknown: "Review the download",
    load: "Load it",
    close: "Got it",
    help: "What MTP does",
    examples: "Try one of these",
    prompts: ["What is the capital of France?", "Explain how a stack works.", "Write a haiku about the sea.", "What is 12 + 30?"],
  },
};
