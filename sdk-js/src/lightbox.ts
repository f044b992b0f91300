/** The pictures of the results, one after the other, as large as the window. */

interface Parts {
  dialog: HTMLDialogElement;
  image: HTMLImageElement;
  link: HTMLAnchorElement;
  place: HTMLElement;
}

let parts: Parts | undefined;
let at = 0;

const openers = (): HTMLElement[] => [...document.querySelectorAll<HTMLElement>("[data-results] [data-enlarge]")];

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

/** Shows the picture of a place in the list; beyond its ends it begins again. */
function show(place: number): void {
  const all = openers();
  if (!parts || all.length === 0) return;
  at = (place + all.length) % all.length;
  const card = all[at]?.closest("article");
  const small = card?.querySelector<HTMLImageElement>(".media img");
  const cover = card?.querySelector<HTMLAnchorElement>("a.cover");
  const title = cover?.textContent?.trim() ?? "";
  if (!small) return;
  enlarge(parts.image, small.src, card?.querySelector<HTMLElement>("[data-full]")?.dataset.full);
  parts.image.alt = title;
  parts.link.textContent = title;
  parts.link.toggleAttribute("href", false);
  if (cover) Object.assign(parts.link, { href: cover.href, rel: cover.rel });
  parts.place.textContent = `${at + 1} of ${all.length}`;
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
  caption.append(link, place);
  figure.append(image, caption);
  dialog.append(
    button("Close", "×", () => dialog.close()),
    figure,
    button("Previous picture", "‹", () => show(at - 1)),
    button("Next picture", "›", () => show(at + 1)),
  );
  dialog.addEventListener("keydown", (event) => {
    const places: Record<string, number> = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: -1 };
    const to = places[event.key];
    if (to === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    show(to);
  });
  // Beside the picture is the page: a click there closes.
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog || event.target === figure) dialog.close();
  });
  // The picture that was looked at last is where one goes on.
  dialog.addEventListener("close", () => openers()[at]?.focus());
  document.body.append(dialog);
  return { dialog, image, link, place };
}

/** Lets the buttons on the pictures enlarge them. */
export function lightbox(): void {
  document.addEventListener("click", (event) => {
    const opener = event.target instanceof Element ? event.target.closest<HTMLElement>("[data-enlarge]") : null;
    if (!opener) return;
    parts ??= build();
    show(openers().indexOf(opener));
    parts.dialog.showModal();
  });
}
