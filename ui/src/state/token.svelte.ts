//! Where the access token comes from. The token itself goes in and never comes out.

import type { AppError, TokenView } from "../bindings";
import * as commands from "../lib/commands";
import { toAppError } from "../lib/errors";

type Wish = "read" | "keep" | "remove";

export const token = $state<{ view: TokenView | null; failed: { wish: Wish; error: AppError } | null }>({ view: null, failed: null });

async function ask(wish: Wish, question: Promise<TokenView>): Promise<boolean> {
  try {
    token.view = await question;
    token.failed = null;
    return true;
  } catch (error) {
    token.failed = { wish, error: toAppError(error) };
    return false;
  }
}

export const readToken = (): Promise<boolean> => ask("read", commands.tokenStatus());
export const setToken = (text: string): Promise<boolean> => ask("keep", commands.setToken(text));
export const clearToken = (): Promise<boolean> => ask("remove", commands.clearToken());
