/** Gives the address of the results to others: by the device's own way where there is one, else by the clipboard. */

import { announce } from "./announce";

const SHOWN_MS = 2500;

async function share(button: HTMLElement): Promise<void> {
  const url = new URL(button.dataset.share ?? "", location.href).href;
  if (typeof navigator.share === "function") {
    try {
      return await navigator.share({ title: document.title, url });
    } catch (error) {
      // Closed by the visitor: that is an answer.
      if (error instanceof DOMException && error.name === "AbortError") return;
    }
  }
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

/** Lets the buttons of this page share. */
export function sharing(): void {
  document.addEventListener("click", (event) => {
    const button = event.target instanceof Element ? event.target.closest<HTMLElement>("[data-share]") : null;
    if (button) void share(button);
  });
}
