/**
 * Tells the page's owner what is done with results: which were opened, and how long they were read. Nothing is told for
 * visitors who ask not to be followed, nothing lasts longer than the tab, and nobody is told who the visitor is.
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

function send(to: string, told: Omit<Told, "session_id">): void {
  const body = { interactions: [{ ...told, session_id: session() }] };
  // As text it is a simple request; the server reads JSON whatever it is called.
  navigator.sendBeacon(to, JSON.stringify(body));
}

/** Starts telling, if there is anything to tell and nobody minds. */
export function tell(): void {
  if (unfollowed() || typeof navigator.sendBeacon !== "function") return;
  const opened = (event: MouseEvent): void => {
    const target = event.target instanceof Element ? event.target : null;
    const card = target?.closest("a[href]")?.closest<HTMLElement>("[data-document]");
    const results = card?.closest<HTMLElement>("[data-beacon]");
    const to = results?.dataset.beacon;
    const document_id = card?.dataset.document;
    if (!card || !results || !to || !document_id) return;
    const act: Opened = {
      document_id,
      position: Number(card.dataset.position ?? 0),
      // Results that were loaded beneath others are of a search of their own.
      execution_id: card.dataset.execution ?? results.dataset.execution,
      query_snapshot: parsed(results.dataset.query),
    };
    store(OPENED, JSON.stringify(act));
    send(to, { ...act, interaction_type: ["click"], result_set_size: Number(results.dataset.total) || undefined });
  };
  document.addEventListener("click", opened);
  // The middle button opens a result too.
  document.addEventListener("auxclick", (event) => {
    if (event.button === 1) opened(event);
  });
  dwell();
}

/** On the page of an item: how long it was in front of the visitor. */
function dwell(): void {
  const item = document.querySelector<HTMLElement>("[data-item][data-beacon]");
  const to = item?.dataset.beacon;
  const document_id = item?.dataset.item;
  if (!to || !document_id) return;
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
    const from = parsed(stored(OPENED)) as Opened | undefined;
    const act = from?.document_id === document_id ? from : { document_id, position: 0 };
    const interaction_type = seconds >= LONG_VIEW_S ? ["dwell", "long_view"] : ["dwell"];
    send(to, { ...act, interaction_type, metadata: { seconds } });
  });
}
