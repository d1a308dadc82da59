/** For tests of components: the text of a reply that grows. */
export function growing(): { readonly current: { text: string; isDone: boolean }; add(text: string): void; end(): void } {
  const current = $state({ text: "", isDone: false });
  return {
    current,
    add: (text) => void (current.text += text),
    end: () => void (current.isDone = true),
  };
}
