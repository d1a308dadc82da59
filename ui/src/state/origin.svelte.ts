import type { Message, Provenance } from "../bindings";
import { messageOrigin } from "../lib/commands";
import { apply, type LiveOrigin } from "./origin";
import { Store } from "./store.svelte";
import { report } from "./view.svelte";

export const origin = new Store(apply, null as LiveOrigin | null);

/** How a reply came or comes, null as long as that is not known. Call while a component is set up. */
export function originOf(message: () => Message | undefined): { readonly current: Provenance | null } {
  let read = $state.raw<{ id: number; origin: Provenance } | null>(null);
  const id = $derived(message()?.id ?? null);
  const isStreaming = $derived(message()?.status === "streaming");
  const live = $derived(origin.current?.messageId === id ? origin.current : null);
  $effect(() => {
    if (id === null || isStreaming) return;
    const wanted = id;
    let isWanted = true;
    messageOrigin(wanted).then((found) => {
      if (isWanted) read = { id: wanted, origin: found };
    }, report);
    return () => {
      isWanted = false;
      read = null;
    };
  });
  return {
    get current() {
      // What was told live stands until the stored whole is read.
      return (isStreaming || read?.id !== id ? live : read?.origin) ?? null;
    },
  };
}
