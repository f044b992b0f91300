/**
 * Tells the page's owner what is done with results: which were seen, looked at, opened, played and given to others, and
 * how long they were read. Nothing is told for visitors who ask not to be followed, nothing lasts longer than the tab, and
 * nobody is told who the visitor is.
 */

interface Told {
  document_id: string;
  interaction_type: string[];
  position: number;
  session_id: string;
  execution_id?: string;
  query_snapshot?: unknown;
  result_set_size?: number;
  metadata?: Record<string, unknown>;
}

/** What a click on a result leaves for the page of the item. */
type Opened = Pick<Told, "position" | "execution_id" | "query_snapshot"> & { document_id: string };

const LONG_VIEW_S = 30;
const SEEN_MS = 1000;
const HALF = 0.5;
/** Interactions of one message, which browsers carry up to 64 KiB of: each may hold a long query. */
const MOST_TOLD = 20;
const SESSION = "loupe.session";
const OPENED = "loupe.opened";

/** Whether the visitor asks not to be followed. */
export function unfollowed(): boolean {
  const privacy = navigator as Navigator & { globalPrivacyControl?: boolean };
  return navigator.doNotTrack === "1" || privacy.globalPrivacyControl === true;
}

/** Storage may be closed to the page; then every act is one of its own. */
function stored(name: string): string | null {
  try {
    return sessionStorage.getItem(name);
  } catch {
    return null;
  }
}

function store(name: string, value: string): void {
  try {
    sessionStorage.setItem(name, value);
  } catch {
    // Nothing depends on it.
  }
}

function session(): string {
  const known = stored(SESSION);
  if (known) return known;
  const fresh = Array.from(crypto.getRandomValues(new Uint8Array(12)), (byte) => byte.toString(16).padStart(2, "0")).join("");
  store(SESSION, fresh);
  return fresh;
}

function parsed(text: string | undefined | null): unknown {
  try {
    return text ? JSON.parse(text) : undefined;
  } catch {
    return undefined;
  }
}

function send(to: string, told: Omit<Told, "session_id">[]): void {
  const body = { interactions: told.map((one) => ({ ...one, session_id: session() })) };
  // As text it is a simple request; the server reads JSON whatever it is called.
  navigator.sendBeacon(to, JSON.stringify(body));
}

const tells = (): boolean => !unfollowed() && typeof navigator.sendBeacon === "function";

/** What is told of the result on a card, and where. */
function found(within: Element | null): { to: string; act: Opened; size?: number } | undefined {
  const card = within?.closest<HTMLElement>("[data-document]");
  const results = card?.closest<HTMLElement>("[data-beacon]");
  const to = results?.dataset.beacon;
  const document_id = card?.dataset.document;
  if (!card || !results || !to || !document_id) return undefined;
  const act: Opened = {
    document_id,
    position: Number(card.dataset.position ?? 0),
    // Results that were loaded beneath others are of a search of their own.
    execution_id: card.dataset.execution ?? results.dataset.execution,
    query_snapshot: parsed(results.dataset.query),
  };
  return { to, act, size: Number(results.dataset.total) || undefined };
}

/** What is told of the item whose page this is, and where: with the search that it was opened from. */
function item(): { to: string; act: Opened } | undefined {
  const shown = document.querySelector<HTMLElement>("[data-item][data-beacon]");
  const to = shown?.dataset.beacon;
  const document_id = shown?.dataset.item;
  if (!to || !document_id) return undefined;
  const from = parsed(stored(OPENED)) as Opened | undefined;
  return { to, act: from?.document_id === document_id ? from : { document_id, position: 0 } };
}

/** Tells what was done with the result of this card, or with the item whose page this is. */
export function did(what: "view" | "share" | "play" | "download", card: Element | null): void {
  const about = tells() ? (found(card) ?? item()) : undefined;
  if (about) send(about.to, [{ ...about.act, interaction_type: [what] }]);
}

/** Starts telling, if there is anything to tell and nobody minds. */
export function tell(): void {
  if (!tells()) return;
  const opened = (event: MouseEvent): void => {
    const target = event.target instanceof Element ? event.target : null;
    const about = found(target?.closest("a[href]") ?? null);
    if (!about) return;
    store(OPENED, JSON.stringify(about.act));
    send(about.to, [{ ...about.act, interaction_type: ["click"], result_set_size: about.size }]);
  };
  document.addEventListener("click", opened);
  // The middle button opens a result too.
  document.addEventListener("auxclick", (event) => {
    if (event.button === 1) opened(event);
  });
  impressions();
  looks();
  plays();
  dwell();
}

/**
 * Results of which half was in front of the visitor for a second, each once per search, and several in one message. They are
 * impressions: a view says that somebody looked at this very result.
 */
function impressions(): void {
  const main = document.querySelector("main");
  if (!main || typeof IntersectionObserver !== "function") return;
  const known = new Set<string>();
  const since = new Map<Element, number>();
  let seen: Omit<Told, "session_id">[] = [];
  let to = "";
  const flush = (): void => {
    if (seen.length > 0) send(to, seen);
    seen = [];
  };
  const see = (card: Element): void => {
    const about = found(card);
    const name = `${about?.act.execution_id} ${about?.act.document_id}`;
    if (!about || known.has(name)) return;
    known.add(name);
    to = about.to;
    seen.push({ ...about.act, interaction_type: ["impression"], result_set_size: about.size });
    if (seen.length >= MOST_TOLD) flush();
  };
  const observer = new IntersectionObserver(
    (entries) => {
      for (const { target, intersectionRatio, time } of entries) {
        if (intersectionRatio >= HALF) since.set(target, time);
        else since.delete(target);
      }
    },
    { threshold: HALF },
  );
  const look = (): void => {
    for (const card of main.querySelectorAll("[data-beacon] [data-document]")) observer.observe(card);
  };
  look();
  new MutationObserver(look).observe(main, { childList: true, subtree: true });
  let quiet = 0;
  setInterval(() => {
    if (document.visibilityState !== "visible") return;
    const before = seen.length;
    for (const [card, from] of since) {
      if (!card.isConnected) since.delete(card);
      else if (performance.now() - from >= SEEN_MS) {
        since.delete(card);
        observer.unobserve(card);
        see(card);
      }
    }
    // While one scrolls on, more are to come.
    quiet = seen.length > before ? 0 : quiet + 1;
    if (quiet >= 2) flush();
  }, SEEN_MS);
  addEventListener("pagehide", flush);
}

/** On the page of an item: that it was looked at, once it was in front of the visitor for a second. */
function looks(): void {
  const timer = setInterval(() => {
    if (document.visibilityState !== "visible") return;
    clearInterval(timer);
    did("view", null);
  }, SEEN_MS);
}

/** On the page of an item: that its recording was played. */
function plays(): void {
  const player = document.querySelector(".figure video, .figure audio");
  player?.addEventListener("play", () => did("play", null), { once: true });
}

/** On the page of an item: how long it was in front of the visitor. */
function dwell(): void {
  const about = item();
  if (!about) return;
  let seen = 0;
  let since = document.visibilityState === "visible" ? performance.now() : 0;
  let done = false;
  const pause = (): void => {
    if (since > 0) seen += performance.now() - since;
    since = 0;
  };
  document.addEventListener("visibilitychange", () => {
    if (document.visibilityState === "visible") since = performance.now();
    else pause();
  });
  addEventListener("pagehide", () => {
    pause();
    const seconds = Math.round(seen / 1000);
    if (done || seconds < 1) return;
    done = true;
    const interaction_type = seconds >= LONG_VIEW_S ? ["dwell", "long_view"] : ["dwell"];
    send(about.to, [{ ...about.act, interaction_type, metadata: { seconds } }]);
  });
}
