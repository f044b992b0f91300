/**
 * Makes the search form of a public page answer while one types. The page is complete without it: this fetches the
 * very address the form would go to and swaps the results, so server and script can never disagree.
 */

import { tell } from "./told";

const WAIT_MS = 250;

tell();

// In a frame of another site the page is as high as what it shows; nothing else is told to that site.
if (parent !== window && document.body.classList.contains("framed")) {
  new ResizeObserver(() => parent.postMessage({ loupe: "height", height: document.body.scrollHeight }, "*")).observe(document.body);
}

const form = document.querySelector<HTMLFormElement>("form[data-search]");
if (form) enhance(form);

function enhance(form: HTMLFormElement): void {
  let timer = 0;
  let running: AbortController | undefined;
  let shown = location.href;

  /** The address the form stands for, without empty values. */
  const address = (): string => {
    const query = new URLSearchParams();
    for (const [name, value] of new FormData(form)) {
      if (typeof value === "string" && value.trim() !== "") query.append(name, value);
    }
    const text = query.toString();
    const url = new URL(form.action);
    url.search = text;
    return url.href;
  };

  const show = async (url: string, remember: "push" | "replace" | "none"): Promise<void> => {
    clearTimeout(timer);
    if (url === shown && remember !== "none") return;
    // The earlier request is given up, so a slow answer never replaces a newer one.
    running?.abort();
    const mine = new AbortController();
    running = mine;
    const old = document.querySelector<HTMLElement>("[data-results]");
    old?.setAttribute("data-busy", "");
    old?.setAttribute("aria-busy", "true");
    try {
      const reply = await fetch(url, { signal: mine.signal, headers: { accept: "text/html" } });
      // A style is for the document of its own reply: the policy of this one refuses it, and says so for every search.
      const text = (await reply.text()).replace(/<style\b[^]*?<\/style>/gi, "");
      const page = new DOMParser().parseFromString(text, "text/html");
      const fresh = page.querySelector<HTMLElement>("[data-results]");
      if (mine.signal.aborted) return;
      // A page without results is another page: a notice, a protected one.
      if (!fresh || !old) return location.assign(url);
      if (remember === "push") history.pushState(null, "", url);
      if (remember === "replace") history.replaceState(null, "", url);
      shown = url;
      document.title = page.title;
      document.body.className = page.body.className;
      swap(page, old, fresh);
    } catch (error) {
      if (mine.signal.aborted) return;
      // The browser says best what is wrong with the network.
      location.assign(url);
    } finally {
      if (running === mine) running = undefined;
      if (!mine.signal.aborted) {
        old?.removeAttribute("data-busy");
        old?.removeAttribute("aria-busy");
      }
    }
  };

  /** Puts the new results in place; only the count is announced, never the list. */
  const swap = (page: Document, old: HTMLElement, fresh: HTMLElement): void => {
    old.replaceWith(document.adoptNode(fresh));
    const hero = document.querySelector(".intro > .hero");
    const next = page.querySelector(".intro > .hero");
    if (hero && next) hero.replaceWith(document.adoptNode(next));
    for (const list of document.querySelectorAll(".intro > .suggestions")) list.remove();
    const hints = page.querySelector(".intro > .suggestions");
    if (hints) document.querySelector(".intro")?.append(document.adoptNode(hints));
    const status = fresh.querySelector<HTMLElement>("[role=status]")?.textContent?.trim();
    if (status) announce(status);
  };

  const region = document.createElement("p");
  region.className = "sr";
  region.setAttribute("aria-live", "polite");
  form.after(region);
  let told = 0;
  const announce = (text: string): void => {
    clearTimeout(told);
    told = window.setTimeout(() => (region.textContent = text), 700);
  };

  const soon = (event: Event): void => {
    // Half a syllable is no query: wait until the input method is done.
    if (event instanceof InputEvent && event.isComposing) return;
    clearTimeout(timer);
    const wait = event.type === "change" ? 0 : WAIT_MS;
    timer = window.setTimeout(() => {
      // The first letter is a step one can go back from; the ones after it only refine the address.
      if (form.checkValidity()) void show(address(), location.search === "" ? "push" : "replace");
    }, wait);
  };
  form.addEventListener("input", soon);
  form.addEventListener("change", soon);
  form.addEventListener("compositionend", soon);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    // What was typed has replaced the address on the way; a submitted search is a step one can go back from.
    const url = address();
    if (url === shown) history.pushState(null, "", url);
    else void show(url, "push");
  });

  // Back and forward: the form and the results of that address. The server knows both best.
  addEventListener("popstate", () => {
    const query = new URLSearchParams(location.search);
    for (const field of form.elements) {
      if (field instanceof HTMLInputElement && (field.type === "checkbox" || field.type === "radio")) {
        field.checked = query.getAll(field.name).includes(field.value);
      } else if (field instanceof HTMLInputElement || field instanceof HTMLSelectElement) {
        // `q` is the short name of what is searched for.
        const short = field.type === "search" ? query.get("q") : null;
        if (field.name) field.value = query.get(field.name) ?? short ?? "";
      }
    }
    void show(location.href, "none");
  });

  // "/" goes to the search, unless one is typing.
  addEventListener("keydown", (event) => {
    const target = event.target;
    const typing = target instanceof HTMLElement && (target.isContentEditable || target.matches("input, select, textarea"));
    if (event.key !== "/" || typing || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    form.querySelector<HTMLInputElement>("input[type=search]")?.select();
  });
}
