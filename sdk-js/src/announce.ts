/** Words for those who hear the page. */

const WAIT_MS = 700;

const region = document.createElement("p");
region.className = "sr";
region.setAttribute("aria-live", "polite");
let timer = 0;

/** Says it once nothing newer is to be said. */
export function announce(text: string): void {
  if (!region.isConnected) (document.querySelector("main") ?? document.body).append(region);
  // The same words are said again only where they are new.
  region.textContent = "";
  clearTimeout(timer);
  timer = window.setTimeout(() => (region.textContent = text), WAIT_MS);
}
