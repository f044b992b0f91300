/**
 * What was searched for lately. It stays in this browser, and only where the page allows it: not behind a password, not for
 * visitors who ask not to be followed.
 */

import { unfollowed } from "./told";

const MOST = 8;
const LONGEST = 200;

export interface Recent {
  /** The newest first. */
  list(): string[];
  keep(text: string): void;
  clear(): void;
}

/** The recent searches of this form. */
export function recent(form: HTMLFormElement): Recent {
  const name = `loupe.recent ${new URL(form.action).pathname}`;
  const isKept = "remembers" in form.dataset && !unfollowed();

  const list = (): string[] => {
    if (!isKept) return [];
    try {
      const list: unknown = JSON.parse(localStorage.getItem(name) ?? "[]");
      return Array.isArray(list) ? list.filter((text) => typeof text === "string").slice(0, MOST) : [];
    } catch {
      // Storage is closed to the page, or holds what is none of ours.
      return [];
    }
  };
  const write = (list: string[]): void => {
    if (!isKept) return;
    try {
      if (list.length > 0) localStorage.setItem(name, JSON.stringify(list));
      else localStorage.removeItem(name);
    } catch {
      // Nothing depends on it.
    }
  };
  return {
    list,
    keep(text) {
      const short = text.trim().slice(0, LONGEST);
      if (short !== "") write([short, ...list().filter((other) => other !== short)].slice(0, MOST));
    },
    clear: () => write([]),
  };
}
