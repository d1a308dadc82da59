//! The words of the window in the language in use.

import { en } from "../lang/en";

export const strings = en;
