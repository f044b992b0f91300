/** Moments of a recording: on the page of one, the player goes to another at once. Without this each link opens its own page. */

import { announce } from "./announce";

/** Lets the moments of this page play. */
export function seeking(): void {
  const list = document.querySelector<HTMLElement>("[data-moments]");
  const player = document.querySelector<HTMLMediaElement>(".figure video, .figure audio");
  if (!list || !player) return;
  list.addEventListener("click", (event) => {
    const link = event.target instanceof Element ? event.target.closest<HTMLAnchorElement>("a[data-seek]") : null;
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    player.currentTime = Number(link.dataset.seek);
    // Browsers may want another touch first; the place is the right one then, too.
    player.play().catch(() => undefined);
    for (const other of list.querySelectorAll("[aria-current]")) other.removeAttribute("aria-current");
    link.setAttribute("aria-current", "true");
    player.scrollIntoView({ block: "nearest" });
    announce(`Playing from ${link.querySelector(".when")?.textContent ?? ""}`);
  });
}
