/**
 * Recent searches: beneath the empty search field, by pointer or with the arrow keys. They stay in this browser, and only
 * where the page allows it: not behind a password, not for visitors who ask not to be followed.
 */

import { announce } from "./announce";
import { unfollowed } from "./told";

const MOST = 8;
const LONGEST = 200;

/** Lists them in this form; answers what keeps one more. */
export function recent(form: HTMLFormElement): (text: string) => void {
  const field = form.querySelector<HTMLInputElement>("input[type=search]");
  if (!field || !("remembers" in form.dataset) || unfollowed()) return () => undefined;
  const name = `loupe.recent ${new URL(form.action).pathname}`;

  const kept = (): string[] => {
    try {
      const list: unknown = JSON.parse(localStorage.getItem(name) ?? "[]");
      return Array.isArray(list) ? list.filter((text) => typeof text === "string").slice(0, MOST) : [];
    } catch {
      // Storage is closed to the page, or holds what is none of ours.
      return [];
    }
  };
  const write = (list: string[]): void => {
    try {
      if (list.length > 0) localStorage.setItem(name, JSON.stringify(list));
      else localStorage.removeItem(name);
    } catch {
      // Nothing depends on it.
    }
  };

  const panel = document.createElement("div");
  panel.className = "recent";
  panel.hidden = true;
  panel.setAttribute("role", "group");
  panel.setAttribute("aria-label", "Recent searches");
  const list = document.createElement("ul");
  const clear = document.createElement("button");
  clear.type = "button";
  clear.textContent = "Clear recent searches";
  panel.append(list, clear);
  field.parentElement?.append(panel);

  const close = (): void => {
    panel.hidden = true;
  };
  const open = (): void => {
    const texts = field.value === "" ? kept() : [];
    if (texts.length === 0) return close();
    if (!panel.hidden) return;
    list.replaceChildren(
      ...texts.map((text) => {
        const link = document.createElement("a");
        const url = new URL(form.action);
        url.search = new URLSearchParams([[field.name, text]]).toString();
        link.href = url.href;
        link.textContent = text;
        const item = document.createElement("li");
        item.append(link);
        return item;
      }),
    );
    panel.hidden = false;
    announce(texts.length === 1 ? "1 recent search. Press the down arrow for it." : `${texts.length} recent searches. Press the down arrow for them.`);
  };

  for (const event of ["focus", "click", "input"]) field.addEventListener(event, open);
  field.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !panel.hidden) {
      event.preventDefault();
      close();
    }
    if (event.key !== "ArrowDown" || event.isComposing) return;
    open();
    const first = panel.hidden ? null : list.querySelector("a");
    if (!first) return;
    event.preventDefault();
    first.focus();
  });
  panel.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      event.preventDefault();
      field.focus();
      return close();
    }
    const steps: Record<string, number> = { ArrowDown: 1, ArrowUp: -1 };
    const step = steps[event.key];
    if (!step) return;
    event.preventDefault();
    const stops = [...panel.querySelectorAll<HTMLElement>("a, button")];
    const next = stops.findIndex((stop) => stop === document.activeElement) + step;
    (next < 0 ? field : stops[Math.min(next, stops.length - 1)])?.focus();
  });
  // A press leaves the focus where it is, or the list would be gone before the click.
  panel.addEventListener("pointerdown", (event) => event.preventDefault());
  field.parentElement?.addEventListener("focusout", (event) => {
    const to = event.relatedTarget;
    if (to !== field && !(to instanceof Node && panel.contains(to))) close();
  });
  clear.addEventListener("click", () => {
    write([]);
    field.focus();
    close();
    announce("Recent searches cleared");
  });

  const keep = (text: string): void => {
    const short = text.trim().slice(0, LONGEST);
    if (short !== "") write([short, ...kept().filter((other) => other !== short)].slice(0, MOST));
  };
  // Who opens a result has found what was looked for.
  document.addEventListener("click", (event) => {
    if (event.target instanceof Element && event.target.closest("[data-results] .cover")) keep(field.value);
  });
  return (text) => {
    close();
    keep(text);
  };
}
