/**
 * The pictures of the results, one after the other, as large as the window; what is a recording plays there. The address is
 * that of the item's own page, which others find there, and the way back closes it.
 */

import { page as parsed } from "./page";
import { did } from "./told";

interface Parts {
  dialog: HTMLDialogElement;
  figure: HTMLElement;
  image: HTMLImageElement;
  link: HTMLAnchorElement;
  place: HTMLElement;
  copy: HTMLButtonElement;
  file: HTMLAnchorElement;
}

type Step = "pushState" | "replaceState";

/** Who goes on at once looks at none of them: only what is looked at is told, and its page asked for a recording. */
const STAY_MS = 600;

let parts: Parts | undefined;
let at = 0;
let soon = 0;
/** Address of the results that it was opened from. */
let from = "";
let leaving = false;

const openers = (): HTMLElement[] => [...document.querySelectorAll<HTMLElement>("[data-results] [data-enlarge]")];
const current = (): Element | null => openers()[at]?.closest("article") ?? null;
/** The page of the item that is enlarged, as the history keeps it. */
const enlarged = (): string | undefined => (history.state as { enlarged?: string } | null)?.enlarged;

function button(name: string, text: string, act: () => void): HTMLButtonElement {
  const made = document.createElement("button");
  made.type = "button";
  made.className = name.toLowerCase().split(" ")[0] ?? "";
  made.setAttribute("aria-label", name);
  made.textContent = text;
  made.addEventListener("click", act);
  return made;
}

/** Shows the small picture at once, and the whole one in its place when it is there; where it does not load, the small one stays. */
function enlarge(image: HTMLImageElement, small: string, full?: string): void {
  image.src = small;
  if (!full) return;
  const whole = new Image();
  whole.src = full;
  whole.decode().then(
    () => {
      // Meanwhile one may have gone on to another.
      if (image.src === small) image.src = full;
    },
    () => undefined,
  );
}

/** Puts the recording of an item in the place of its picture, at the second that was found: its own page has both. */
async function record(page: string): Promise<void> {
  const reply = await fetch(page, { headers: { accept: "text/html" } });
  if (!reply.ok) return;
  const item = parsed(await reply.text());
  const player = item.querySelector<HTMLMediaElement>(".figure video, .figure audio");
  const file = item.querySelector<HTMLAnchorElement>("a[download]");
  if (!parts?.dialog.open || !player || new URL(openers()[at]?.dataset.page ?? "", location.href).pathname !== page) return;
  const card = current();
  document.adoptNode(player).addEventListener("play", () => did("play", card), { once: true });
  parts.figure.firstElementChild?.replaceWith(player);
  if (file) parts.file.href = file.href;
}

/** Takes away what plays. */
function still(): void {
  clearTimeout(soon);
  const player = parts?.figure.firstElementChild;
  if (!parts || !(player instanceof HTMLMediaElement)) return;
  player.pause();
  player.replaceWith(parts.image);
}

/** Shows the picture of a place in the list; beyond its ends it begins again. */
function show(place: number, step?: Step): void {
  const all = openers();
  if (!parts || all.length === 0) return;
  still();
  at = (place + all.length) % all.length;
  const card = current();
  const small = card?.querySelector<HTMLImageElement>(".media img");
  const cover = card?.querySelector<HTMLAnchorElement>("a.cover");
  const title = cover?.textContent?.trim() ?? "";
  if (!small) return;
  const data = all[at]?.dataset;
  const full = data?.full;
  const page = data?.page ?? location.href;
  enlarge(parts.image, small.src, full);
  parts.image.alt = title;
  parts.link.textContent = title;
  parts.link.toggleAttribute("href", false);
  if (cover) Object.assign(parts.link, { href: cover.href, rel: cover.rel });
  parts.place.textContent = `${at + 1} of ${all.length}`;
  parts.file.href = full ?? small.src;
  // Others need not know what was searched for.
  const own = new URL(page, location.href).pathname;
  parts.copy.dataset.copy = own;
  if (step) history[step]({ enlarged: page }, "", page);
  soon = window.setTimeout(() => {
    did("view", card);
    // What has a whole picture is one.
    if (!full) record(own).catch(() => undefined);
  }, STAY_MS);
}

/** Goes back to the results, which closes; where the history has no such step, it closes by itself. */
function leave(): void {
  if (leaving) return;
  leaving = enlarged() !== undefined;
  if (leaving) history.back();
  else parts?.dialog.close();
}

/** What is done with the picture that is shown, in words. */
function actions(): Pick<Parts, "copy" | "file"> & { row: HTMLElement } {
  const row = document.createElement("div");
  const copy = document.createElement("button");
  copy.type = "button";
  copy.textContent = "Copy link";
  copy.addEventListener("click", () => did("share", current()));
  const file = document.createElement("a");
  file.textContent = "Download";
  file.download = "";
  // Files of other sites open, for browsers save none of them.
  Object.assign(file, { target: "_blank", rel: "noopener noreferrer nofollow" });
  file.addEventListener("click", () => did("download", current()));
  for (const one of [copy, file]) one.className = "button small";
  row.append(copy, file);
  return { row, copy, file };
}

function build(): Parts {
  const dialog = document.createElement("dialog");
  dialog.className = "lightbox";
  dialog.setAttribute("aria-label", "Pictures of the results");
  const figure = document.createElement("figure");
  const image = document.createElement("img");
  const caption = document.createElement("figcaption");
  caption.setAttribute("aria-live", "polite");
  const link = document.createElement("a");
  const place = document.createElement("span");
  const { row, copy, file } = actions();
  caption.append(link, place);
  figure.append(image, caption, row);
  const go = (to: number): void => show(to, enlarged() === undefined ? undefined : "replaceState");
  dialog.append(
    button("Close", "×", leave),
    figure,
    button("Previous picture", "‹", () => go(at - 1)),
    button("Next picture", "›", () => go(at + 1)),
  );
  dialog.addEventListener("keydown", (event) => {
    const places: Record<string, number> = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: -1 };
    const to = places[event.key];
    if (to === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    // In a recording they lead to other seconds of it.
    if (event.target instanceof HTMLMediaElement) return;
    event.preventDefault();
    go(to);
  });
  // Beside the picture is the page: a click there closes.
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog || event.target === figure) leave();
  });
  dialog.addEventListener("cancel", (event) => {
    event.preventDefault();
    leave();
  });
  dialog.addEventListener("close", () => {
    still();
    // Browsers may close it whatever is said to them.
    if (enlarged() !== undefined) leave();
    // The picture that was looked at last is where one goes on.
    openers()[at]?.focus();
  });
  document.body.append(dialog);
  return { dialog, figure, image, link, place, copy, file };
}

function open(place: number, step?: Step): void {
  parts ??= build();
  if (!parts.dialog.open) parts.dialog.showModal();
  show(place, step);
}

/** Lets the buttons on the pictures enlarge them. */
export function lightbox(): void {
  document.addEventListener("click", (event) => {
    const opener = event.target instanceof Element ? event.target.closest<HTMLElement>("[data-enlarge]") : null;
    if (!opener) return;
    from = location.href;
    open(openers().indexOf(opener), "pushState");
  });
  const here = location.pathname;
  addEventListener("popstate", (event) => {
    const page = enlarged();
    const place = page === undefined ? -1 : openers().findIndex((opener) => opener.dataset.page === page);
    const closes = page === undefined && (leaving || parts?.dialog.open === true);
    leaving = false;
    if (closes) parts?.dialog.close();
    if (place >= 0) open(place);
    // The results are still there; for other results the search has to hear of it.
    if (place >= 0 || (closes && location.href === from)) event.stopImmediatePropagation();
    // One that was loaded under the address of an item is the item's page, and holds no results to go back to.
    else if (location.pathname !== here) location.reload();
  });
}
