/** Gives addresses to others: of the results by the device's own way where there is one, else by the clipboard, as of an item. */

import { announce } from "./announce";
import { did } from "./told";

const SHOWN_MS = 2500;

async function copy(button: HTMLElement, url: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(url);
  } catch {
    // No clipboard without a safe connection.
    prompt("Copy this link", url);
    return;
  }
  announce("Link copied");
  const label = button.textContent;
  if (label === "Link copied") return;
  button.textContent = "Link copied";
  setTimeout(() => (button.textContent = label), SHOWN_MS);
}

async function share(button: HTMLElement, url: string): Promise<void> {
  if (typeof navigator.share === "function") {
    try {
      return await navigator.share({ title: document.title, url });
    } catch (error) {
      // Closed by the visitor: that is an answer.
      if (error instanceof DOMException && error.name === "AbortError") return;
    }
  }
  return copy(button, url);
}

/** Lets the buttons of this page share and copy, and tells of both and of downloads where they are of one item. */
export function sharing(): void {
  document.addEventListener("click", (event) => {
    const target = event.target instanceof Element ? event.target : null;
    const button = target?.closest<HTMLElement>("[data-share], [data-copy]");
    if (button) {
      const url = new URL(button.dataset.share ?? button.dataset.copy ?? "", location.href).href;
      void ("copy" in button.dataset ? copy(button, url) : share(button, url));
      did("share", null);
    } else if (target?.closest("a[download]")) did("download", null);
  });
}
