//! Where the access token comes from. The token itself goes in and never comes out.

import type { AppError, TokenSource } from "../bindings";
import * as commands from "../lib/commands";
import { toAppError } from "../lib/errors";

export const token = $state<{ source: TokenSource | null; error: AppError | null }>({ source: null, error: null });

async function ask(question: Promise<TokenSource>): Promise<boolean> {
  try {
    token.source = await question;
    token.error = null;
    return true;
  } catch (error) {
    token.error = toAppError(error);
    return false;
  }
}

export const readToken = (): Promise<boolean> => ask(commands.tokenStatus());
export const setToken = (text: string): Promise<boolean> => ask(commands.setToken(text));
export const clearToken = (): Promise<boolean> => ask(commands.clearToken());
