const ENTITIES: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };

/** Text as HTML. */
export const escape = (text: string): string => text.replace(/[&<>"']/g, (c) => ENTITIES[c]!);
