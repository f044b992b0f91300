/** What a visitor sees of a search that is under way: nothing for a quick one, a calm sign for a slow one, and a way out. */

import { announce } from "./announce";

const SLOW_MS = 400;
const LATE_MS = 8000;

/** Says something at the edge of the window, where nothing moves for it, and offers to try again. */
export function toast(text: string, act: () => void): HTMLElement {
  for (const old of document.querySelectorAll(".notice")) old.remove();
  const notice = document.createElement("div");
  notice.className = "notice";
  const words = document.createElement("p");
  words.textContent = text;
  const again = document.createElement("button");
  again.type = "button";
  again.className = "button small";
  again.textContent = "Try again";
  again.addEventListener("click", () => {
    notice.remove();
    act();
  });
  notice.append(words, again);
  (document.querySelector("main") ?? document.body).append(notice);
  announce(text);
  return notice;
}

/**
 * Begins to wait for results: `area` is what will be replaced, `again` asks anew. What it answers ends the wait, and has to
 * be told whether another search has taken the place of this one.
 */
export function waiting(form: HTMLFormElement, area: HTMLElement | null, again: () => void): (overtaken: boolean) => void {
  for (const old of document.querySelectorAll(".notice")) old.remove();
  area?.toggleAttribute("data-busy", true);
  area?.setAttribute("aria-busy", "true");
  let late: HTMLElement | undefined;
  const slow = window.setTimeout(() => {
    form.toggleAttribute("data-slow", true);
    announce("Searching");
  }, SLOW_MS);
  const notice = window.setTimeout(() => (late = toast("This search takes longer than usual.", again)), LATE_MS);
  return (overtaken) => {
    clearTimeout(slow);
    clearTimeout(notice);
    late?.remove();
    form.toggleAttribute("data-slow", false);
    if (overtaken) return;
    area?.removeAttribute("data-busy");
    area?.removeAttribute("aria-busy");
  };
}
