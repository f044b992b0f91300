/**
 * What may be searched for, beneath the search field: recent searches while it is empty, then those and the page's suggestions that
 * go on from what is typed. A combobox as the ARIA practices have it (list, chosen by hand): the focus stays in the field, arrows
 * mark a place, Enter searches for it.
 */

import { announce } from "./announce";
import { composing } from "./composing";
import { recent } from "./recent";

const MOST = 8;

interface Offer {
  text: string;
  isRecent: boolean;
}

/** Offers them in this form; answers what is to be called with each text that is searched for. */
export function completion(form: HTMLFormElement): (text: string) => void {
  const field = form.querySelector<HTMLInputElement>("input[type=search]");
  const past = recent(form);
  if (!field) return () => undefined;
  // Browsers offer the page's own suggestions by themselves where there is no script.
  const suggestions = [...(field.list?.options ?? [])].map((option) => option.value);
  field.removeAttribute("list");
  if (suggestions.length === 0 && !("remembers" in form.dataset)) return () => undefined;

  const panel = document.createElement("div");
  panel.className = "completion";
  panel.hidden = true;
  const list = document.createElement("ul");
  list.id = `${field.id}-offers`;
  list.setAttribute("role", "listbox");
  const clear = document.createElement("button");
  clear.type = "button";
  clear.textContent = "Clear recent searches";
  panel.append(list, clear);
  field.parentElement?.append(panel);
  field.setAttribute("role", "combobox");
  field.setAttribute("aria-autocomplete", "list");
  field.setAttribute("aria-controls", list.id);
  field.setAttribute("aria-expanded", "false");

  const options = (): HTMLElement[] => [...list.querySelectorAll<HTMLElement>("[role=option]")];
  let marked = -1;
  const mark = (place: number): void => {
    marked = place;
    for (const [at, option] of options().entries()) option.setAttribute("aria-selected", String(at === place));
    const option = options()[place];
    if (option) field.setAttribute("aria-activedescendant", option.id);
    else field.removeAttribute("aria-activedescendant");
    option?.scrollIntoView({ block: "nearest" });
  };

  const close = (): void => {
    panel.hidden = true;
    field.setAttribute("aria-expanded", "false");
    mark(-1);
  };
  const open = (): void => {
    const offers = offered(field.value, past.list(), suggestions);
    if (offers.length === 0) return close();
    const isNew = panel.hidden;
    const isRecent = offers.some((offer) => offer.isRecent);
    list.setAttribute("aria-label", field.value.trim() === "" && isRecent ? "Recent searches" : "Suggestions");
    list.replaceChildren(...offers.map((offer, at) => drawn(offer, `${list.id}-${at}`)));
    clear.hidden = field.value.trim() !== "" || !isRecent;
    panel.hidden = false;
    field.setAttribute("aria-expanded", "true");
    mark(-1);
    if (isNew) announce(offers.length === 1 ? "1 suggestion. Press the down arrow for it." : `${offers.length} suggestions. Press the down arrow for them.`);
  };
  const choose = (option: HTMLElement): void => {
    field.value = option.dataset.text ?? "";
    field.focus();
    form.requestSubmit();
  };

  field.addEventListener("input", open);
  for (const event of ["focus", "click"]) {
    field.addEventListener(event, () => {
      if (panel.hidden && field.value === "") open();
    });
  }
  field.addEventListener("keydown", (event) => {
    if (composing(event) || event.ctrlKey || event.metaKey) return;
    if (event.key === "Escape" && !panel.hidden) {
      event.preventDefault();
      return close();
    }
    const option = options()[marked];
    if (event.key === "Enter" && !panel.hidden && option) {
      event.preventDefault();
      return choose(option);
    }
    const steps: Record<string, number> = { ArrowDown: 1, ArrowUp: -1 };
    const step = steps[event.key];
    if (!step) return;
    if (panel.hidden) open();
    if (panel.hidden) return;
    event.preventDefault();
    // After the last one comes what was typed.
    const places = options().length + 1;
    mark(((marked + 1 + step + places) % places) - 1);
  });
  // A press leaves the focus where it is, or the list would be gone before the click.
  panel.addEventListener("pointerdown", (event) => event.preventDefault());
  list.addEventListener("click", (event) => {
    const option = event.target instanceof Element ? event.target.closest<HTMLElement>("[role=option]") : null;
    if (option) choose(option);
  });
  panel.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    field.focus();
    close();
  });
  field.parentElement?.addEventListener("focusout", (event) => {
    const to = event.relatedTarget;
    if (to !== field && !(to instanceof Node && panel.contains(to))) close();
  });
  clear.addEventListener("click", () => {
    past.clear();
    field.focus();
    close();
    announce("Recent searches cleared");
  });
  // Who opens a result has found what was looked for.
  document.addEventListener("click", (event) => {
    if (event.target instanceof Element && event.target.closest("[data-results] .cover")) past.keep(field.value);
  });
  return (text) => {
    close();
    past.keep(text);
  };
}

/** What fits what is typed: each of its words begins one of theirs. The page's own are on the page while nothing is typed. */
function offered(typed: string, past: string[], suggestions: string[]): Offer[] {
  const words = split(typed);
  const known = past.map((text) => ({ text, isRecent: true }));
  if (words.length === 0) return known;
  const fresh = suggestions.filter((text) => !past.includes(text)).map((text) => ({ text, isRecent: false }));
  const fits = ({ text }: Offer): boolean => {
    const theirs = split(text);
    return text.trim() !== typed.trim() && words.every((word) => theirs.some((other) => other.startsWith(word)));
  };
  return [...known, ...fresh].filter(fits).slice(0, MOST);
}

function split(text: string): string[] {
  return text.toLocaleLowerCase().split(/[^\p{L}\p{N}\p{M}]+/u).filter((word) => word !== "");
}

function drawn({ text, isRecent }: Offer, id: string): HTMLElement {
  const option = document.createElement("li");
  option.id = id;
  option.setAttribute("role", "option");
  option.setAttribute("aria-selected", "false");
  option.dataset.text = text;
  const words = document.createElement("span");
  words.textContent = text;
  option.append(words);
  if (isRecent) {
    const note = document.createElement("small");
    note.textContent = "recent";
    option.append(note);
  }
  return option;
}
