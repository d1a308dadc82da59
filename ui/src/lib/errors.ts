import type { AppError } from "../bindings";
import { strings } from "./strings";

/** Whatever a command rejected with, as an error with words. Tauri itself rejects with plain strings. */
export function toAppError(thrown: unknown): AppError {
  if (typeof thrown === "object" && thrown !== null && "message" in thrown) {
    const { kind, message, hint } = thrown as Partial<AppError>;
    return { kind: kind ?? "unexpected", message: String(message), hint: hint ?? null };
  }
  return { kind: "unexpected", message: String(thrown || strings.errors.unexpected), hint: null };
}

/** Several failures as one; what to do is said of each where there is only one. */
export function asOne(errors: readonly AppError[], hint: string): AppError | null {
  const [first, ...others] = errors;
  if (!first || others.length === 0) return first ?? null;
  return { kind: first.kind, message: errors.map((error) => error.message).join("; "), hint };
}
