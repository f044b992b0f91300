/**
 * Makes the search form of a public page answer while one types. The page is complete without it: this fetches the
 * very address the form would go to and swaps the results, so server and script can never disagree.
 */

import { announce } from "./announce";
import { boxes } from "./boxes";
import { completion } from "./completion";
import { composing } from "./composing";
import { held } from "./held";
import { lightbox } from "./lightbox";
import { seeking } from "./moments";
import { notes } from "./notes";
import { page as parsed } from "./page";
import { picking } from "./picked";
import { accepted, read } from "./progress";
import { sharing } from "./share";
import { tell } from "./told";
import { toast, waiting } from "./waiting";

const WAIT_MS = 250;
/** Pages of results that are loaded again on the way back. */
const MOST_PAGES = 20;

type Step = "push" | "replace" | "none";

/** What an entry of the history keeps of a page of results. */
interface Kept {
  /** The last page that was loaded beneath the first. */
  through?: number;
  /** How far down one was. */
  y?: number;
  /** The files that were searched with. */
  picked?: string;
}

tell();
sharing();
lightbox();
seeking();

// In a frame of another site the page is as high as what it shows; nothing else is told to that site.
if (parent !== window && document.body.classList.contains("framed")) {
  new ResizeObserver(() => parent.postMessage({ loupe: "height", height: document.body.scrollHeight }, "*")).observe(document.body);
}

const form = document.querySelector<HTMLFormElement>("form[data-search]");
if (form) enhance(form);

function enhance(form: HTMLFormElement): void {
  let timer = 0;
  let running: AbortController | undefined;
  /** Whether what is running will take the place of the results. */
  let replacing = false;
  const bare = (url: string): string => url.split("#")[0] ?? url;
  let shown = bare(location.href);

  const results = (): HTMLElement | null => document.querySelector<HTMLElement>("[data-results]");
  const kept = (): Kept => (history.state as Kept | null) ?? {};
  const keep = (more: Kept): void => history.replaceState({ ...kept(), ...more }, "");

  const field = form.querySelector<HTMLInputElement>("input[type=search]");
  const remember = completion(form);
  const picks = picking(form, () => {
    clearTimeout(timer);
    // Nothing is asked where the one file there has to be was taken away.
    if (picks.mark() === "" || form.checkValidity()) void show(address(), "push");
  });

  /** The address the form stands for, without empty values. */
  const address = (): string => {
    const query = new URLSearchParams();
    for (const [name, value] of new FormData(form)) {
      if (typeof value === "string" && value.trim() !== "") query.append(name, value);
    }
    // What is ticked by itself has to be named where it was unticked.
    for (const box of form.querySelectorAll<HTMLInputElement>("input[data-else]")) {
      if (!box.checked) query.append(box.name, box.dataset.else ?? "");
    }
    const text = query.toString();
    const url = new URL(form.action);
    url.search = text;
    return url.href;
  };

  /** An address with the files that no address holds. */
  const named = (url: string): string => (picks.mark() === "" ? url : `${url}#${picks.mark()}`);

  /** The page at an address, for the files that are picked. */
  const fetched = async (url: string, signal: AbortSignal): Promise<Document> => {
    const files = picks.sent();
    // A search with a file is not told stage by stage.
    const asked: RequestInit = { signal, headers: { accept: files.length > 0 ? "text/html" : accepted(form) } };
    if (files.length > 0) {
      const body = new FormData();
      for (const [name, file] of files) body.append(name, file, file.name);
      Object.assign(asked, { method: "POST", body });
    }
    const reply = await fetch(url, asked);
    return parsed(await read(form, reply));
  };

  /** What is shown is what is wanted: an answer that is still on its way to take its place is not. */
  const settle = (): void => {
    clearTimeout(timer);
    if (!replacing) return;
    running?.abort();
    running = undefined;
    replacing = false;
  };

  const show = async (url: string, step: Step): Promise<void> => {
    clearTimeout(timer);
    if (named(url) === shown && step !== "none") return settle();
    // The earlier request is given up, so a slow answer never replaces a newer one.
    running?.abort();
    const mine = new AbortController();
    running = mine;
    replacing = true;
    const old = results();
    const over = waiting(form, old, () => void show(url, step));
    try {
      const page = await fetched(url, mine.signal);
      if (mine.signal.aborted) return;
      const fresh = page.querySelector<HTMLElement>("[data-results]");
      // A page without results is another page: a notice, a protected one.
      if (!fresh || !old) return location.assign(url);
      const state: Kept = picks.mark() === "" ? {} : { picked: picks.mark() };
      if (step === "push") {
        keep({ y: scrollY });
        history.pushState(state, "", url);
      }
      if (step === "replace") history.replaceState(state, "", url);
      shown = named(url);
      document.title = page.title;
      document.body.className = page.body.className;
      swap(page, old, fresh);
    } catch {
      if (!mine.signal.aborted) unreached(url, step);
    } finally {
      // Given up without another in its place, it is no longer waited for.
      over(running !== undefined && running !== mine);
      if (running === mine) {
        running = undefined;
        replacing = false;
      }
    }
  };

  /** Puts the new results in place; only their count is announced, and what is to be known of it, never the list. */
  const swap = (page: Document, old: HTMLElement, fresh: HTMLElement): void => {
    const refocus = held();
    fresh.toggleAttribute("data-live", true);
    // On phones the filters are folded, or not, as the visitor left them.
    const [before, after] = [old, fresh].map((area) => area.querySelector<HTMLDetailsElement>(".facets details"));
    if (before && after) after.open = before.open;
    old.replaceWith(document.adoptNode(fresh));
    const hero = document.querySelector(".intro > .hero");
    const next = page.querySelector(".intro > .hero");
    if (hero && next) hero.replaceWith(document.adoptNode(next));
    for (const list of document.querySelectorAll(".intro > .suggestions")) list.remove();
    const hints = page.querySelector(".intro > .suggestions");
    if (hints) document.querySelector(".intro")?.append(document.adoptNode(hints));
    // The filters that the next search keeps.
    for (const filter of form.querySelectorAll("input[type=hidden]")) filter.remove();
    form.append(...page.querySelectorAll("form[data-search] input[type=hidden]"));
    notes(page);
    refocus(fresh);
    // The count first: what a language model wrote stands above it.
    const told = [...fresh.querySelectorAll("[role=status]")].sort((one, other) => rank(one) - rank(other));
    const words = told.map((status) => status.textContent?.trim() ?? "").filter((text) => text !== "");
    if (words.length > 0) announce(words.join(". "));
  };

  const rank = (status: Element): number => (status.closest(".written") ? 1 : 0);

  /** Says in place of the results that there are none to be had, and offers to try again. */
  const unreached = (url: string, step: Step): void => {
    const area = results();
    if (!area) return location.assign(url);
    const state = document.createElement("div");
    state.className = "state";
    state.setAttribute("role", "alert");
    const title = document.createElement("h2");
    title.textContent = "The search could not be reached";
    const text = document.createElement("p");
    text.textContent = "Check the connection, then try again.";
    const again = document.createElement("button");
    again.type = "button";
    again.className = "button";
    again.textContent = "Try again";
    again.addEventListener("click", () => {
      field?.focus({ preventScroll: true });
      void show(url, step);
    });
    state.append(title, text, again);
    const lost = area.contains(document.activeElement);
    area.replaceChildren(state);
    if (lost) again.focus({ preventScroll: true });
    // Whatever was shown before can be asked for again.
    shown = "";
  };

  /** Number of the page that a link leads to. */
  const numbered = (link: HTMLAnchorElement): number => Number(new URL(link.href).searchParams.get("page") ?? 1);
  const onward = (): HTMLAnchorElement | null => document.querySelector<HTMLAnchorElement>("[data-results] a[data-more]");

  /** Puts the next page of results beneath those that are there; false where nothing came. */
  const more = async (): Promise<boolean> => {
    const link = onward();
    const old = results();
    if (!link || !old || (running && !running.signal.aborted)) return false;
    const mine = new AbortController();
    running = mine;
    replacing = false;
    const url = link.href;
    const over = waiting(form, null, () => {
      mine.abort();
      void more();
    });
    link.setAttribute("aria-busy", "true");
    try {
      const page = await fetched(url, mine.signal);
      if (mine.signal.aborted) return false;
      const fresh = page.querySelector<HTMLElement>("[data-results]");
      const known = new Set([...old.querySelectorAll<HTMLElement>("li[data-document]")].map((card) => card.dataset.document));
      const cards = [...(fresh?.querySelectorAll<HTMLElement>("li[data-document]") ?? [])];
      const lists = old.querySelectorAll("ul.results");
      const last = lists[lists.length - 1];
      if (!fresh || !last || cards.length === 0) {
        toast("More results could not be loaded.", () => void more());
        return false;
      }
      const added = cards.filter((card) => !known.has(card.dataset.document));
      for (const card of added) if (fresh.dataset.execution) card.dataset.execution = fresh.dataset.execution;
      append(last, added);
      keep({ through: numbered(link) });
      follow(old, fresh, link, added[0]);
      const count = known.size + added.length;
      announce(`${added.length} more results: ${count} of ${link.dataset.more ?? count}`);
      return true;
    } catch {
      if (!mine.signal.aborted) toast("More results could not be loaded.", () => void more());
      return false;
    } finally {
      over(mine.signal.aborted);
      link.removeAttribute("aria-busy");
      if (running === mine) running = undefined;
    }
  };

  /** Columns of pictures would flow anew with every card, so there each page is a list of its own. */
  const append = (list: Element, cards: HTMLElement[]): void => {
    if (!document.body.classList.contains("m-masonry")) return list.append(...cards);
    const beneath = list.cloneNode(false) as HTMLElement;
    beneath.append(...cards);
    list.after(beneath);
  };

  /** The links to the pages lead on from the one that was loaded. The focus stays, or is at the first of the new results. */
  const follow = (old: HTMLElement, fresh: HTMLElement, link: HTMLAnchorElement, first: HTMLElement | undefined): void => {
    const numbers = fresh.querySelector(".paging ul");
    if (numbers) old.querySelector(".paging ul")?.replaceWith(document.adoptNode(numbers));
    const next = fresh.querySelector<HTMLAnchorElement>("a[data-more]");
    if (next) {
      link.href = next.href;
      return;
    }
    const focused = document.activeElement === link;
    link.parentElement?.remove();
    if (focused) first?.querySelector<HTMLElement>("a, button")?.focus({ preventScroll: true });
  };

  const stay = (): void => {
    if (kept().through) keep({ y: scrollY });
  };

  /** Back at results of which more had been loaded: all of them again, and the place among them. */
  const again = async (): Promise<void> => {
    const { through = 0, y } = kept();
    if (through === 0) return;
    for (let pages = 0; pages < MOST_PAGES; pages += 1) {
      const link = onward();
      if (!link || numbered(link) > through) break;
      if (!(await more())) return;
    }
    if (y !== undefined) scrollTo({ top: y, behavior: "instant" });
  };

  const soon = (event: Event): void => {
    // Files are made ready first, and tell when they are.
    if (event.target instanceof HTMLInputElement && event.target.type === "file") return;
    // Half a syllable is no query: wait until the input method is done.
    if (composing(event)) return;
    clearTimeout(timer);
    boxes(form);
    // What is left open is searched with by itself: the field says so.
    const left = event.target;
    if (event.type === "change" && (left instanceof HTMLInputElement || left instanceof HTMLSelectElement) && left.value === "") left.value = left.dataset.default ?? "";
    const wait = event.type === "change" ? 0 : WAIT_MS;
    timer = window.setTimeout(() => {
      // The first letter is a step one can go back from; the ones after it only refine the address.
      if (form.checkValidity()) void show(address(), location.search === "" ? "push" : "replace");
    }, wait);
  };
  boxes(form);
  // On the way back browsers fill forms in by themselves.
  addEventListener("pageshow", () => boxes(form));
  form.addEventListener("input", soon);
  form.addEventListener("change", soon);
  form.addEventListener("compositionend", soon);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    remember(field?.value ?? "");
    // What was typed has replaced the address on the way; a submitted search is a step one can go back from.
    const url = address();
    if (named(url) !== shown) return void show(url, "push");
    settle();
    history.pushState(kept(), "", url);
  });
  // The key that ends a word of an input method sends no form.
  form.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && composing(event)) event.preventDefault();
  });

  document.addEventListener("click", (event) => {
    const target = event.target instanceof Element ? event.target : null;
    const link = target?.closest<HTMLAnchorElement>("[data-results] a[href], .suggestions a[href]");
    if (link) stay();
    if (!link || link.target !== "" || event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    if (link.matches("[data-more]")) {
      event.preventDefault();
      void more();
    } else if (link.matches(".retry")) {
      event.preventDefault();
      field?.focus({ preventScroll: true });
      void show(link.href, "none");
    } else if (link.origin + link.pathname === form.action) {
      // Another search of this page: with other filters, another page of it, suggested, or for what is like a result.
      event.preventDefault();
      const same = link.closest(".paging, .facets, .chips");
      // No address holds the file: it goes along to the other pages, and with other filters.
      if (!same) {
        fill(new URL(link.href).searchParams);
        picks.restore("");
      }
      // Filters that are folded out above the results stay where they are.
      const folded = link.closest("details")?.querySelector("summary")?.checkVisibility?.();
      void show(link.href, "push").then(() => {
        if (!folded) seen();
      });
    }
  });

  /** New results are seen from their beginning. */
  const seen = (): void => {
    const area = results();
    if (area && area.getBoundingClientRect().top < 0) area.scrollIntoView();
  };

  /** Fills the form in as an address has it. */
  const fill = (query: URLSearchParams): void => {
    for (const field of form.elements) {
      if (field instanceof HTMLInputElement && ["file", "hidden"].includes(field.type)) continue;
      if (field instanceof HTMLInputElement && (field.type === "checkbox" || field.type === "radio")) {
        field.checked = query.has(field.name) ? query.getAll(field.name).includes(field.value) : "ticked" in field.dataset;
      } else if (field instanceof HTMLInputElement || field instanceof HTMLSelectElement || field instanceof HTMLTextAreaElement) {
        // `q` is the short name of what is searched for.
        const short = field.matches(".bar *") ? query.get("q") : null;
        // A list that is typed has its values in one field.
        if (field.name) field.value = query.has(field.name) ? query.getAll(field.name).join(", ") : (short ?? field.dataset.default ?? "");
      }
    }
    boxes(form);
  };

  // Back and forward: the form and the results of that address. The server knows both best.
  addEventListener("popstate", () => {
    // Another place of the same page is no other search.
    if (location.hash !== "" && named(bare(location.href)) === shown && !running) return;
    fill(new URLSearchParams(location.search));
    picks.restore(kept().picked ?? "");
    const at = location.href;
    void show(bare(at), "none").then(async () => {
      await again();
      // What is there now may be longer than what the browser had a place in.
      const { through, y } = kept();
      if (!through && y !== undefined && location.href === at) scrollTo({ top: y, behavior: "instant" });
    });
  });
  addEventListener("scrollend", stay);
  void again();

  // "/" goes to the search, unless one is typing.
  addEventListener("keydown", (event) => {
    const target = event.target;
    const typing = target instanceof HTMLElement && (target.isContentEditable || target.matches("input, select, textarea"));
    if (event.key !== "/" || typing || event.ctrlKey || event.metaKey || event.altKey) return;
    if (document.querySelector("dialog[open]")) return;
    event.preventDefault();
    field?.focus();
    field?.select();
  });
}
