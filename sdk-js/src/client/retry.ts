/** How often a request that may go better later is sent again. */
export interface RetryOptions {
  /** Further attempts, default 3; 0 sends once. */
  retries?: number;
  /** Longest pause in milliseconds, also against what the server asks for; default 30 s. */
  longestPause?: number;
}

type Fetch = (request: Request) => Promise<Response>;

const LATER = new Set([429, 502, 503, 504]);

/**
 * Sends again what the server had no room for, after the pause it asks for, and what the network lost. Every POST that
 * is no stream carries an `Idempotency-Key`, so none is done twice.
 */
export function retrying(send: Fetch, { retries = 3, longestPause = 30_000 }: RetryOptions = {}): Fetch {
  return async (request) => {
    const named = request.method !== "POST" || request.headers.has("idempotency-key") || (await streams(request));
    const asked = named ? request : withKey(request);
    for (let attempt = 0; ; attempt += 1) {
      const last = attempt >= retries;
      // A body can be read once: each attempt but the last sends a copy.
      const answer = await send(last ? asked : asked.clone()).catch((error: unknown) => {
        if (last || asked.signal.aborted) throw error;
        return undefined;
      });
      if (answer && (last || !LATER.has(answer.status))) return answer;
      const pause = Math.min(asks(answer) ?? 250 * 2 ** attempt * (0.75 + Math.random() / 2), longestPause);
      await answer?.body?.cancel();
      await wait(pause, asked.signal);
    }
  };
}

/** A search that is told while it runs cannot be repeated, and takes no key. */
async function streams(request: Request): Promise<boolean> {
  if (!new URL(request.url).pathname.endsWith("/execute")) return false;
  const body = (await request
    .clone()
    .json()
    .catch(() => undefined)) as { stream?: unknown } | undefined;
  return body?.stream === true;
}

function withKey(request: Request): Request {
  const headers = new Headers(request.headers);
  headers.set("idempotency-key", unique());
  return new Request(request, { headers });
}

/** Browsers have random ids on secure origins only, and Node 18 has none without a flag. */
function unique(): string {
  const piece = (): string => Math.random().toString(36).slice(2);
  return globalThis.crypto?.randomUUID?.() ?? `${Date.now().toString(36)}-${piece()}${piece()}`;
}

/** Milliseconds that the server asks to wait for. */
function asks(answer: Response | undefined): number | undefined {
  const seconds = Number(answer?.headers.get("retry-after") ?? Number.NaN);
  return Number.isFinite(seconds) ? seconds * 1000 : undefined;
}

/** A pause that ends early when the request is given up. */
export function wait(milliseconds: number, signal?: AbortSignal | null): Promise<void> {
  return new Promise((resolve, reject) => {
    const end = (): void => {
      clearTimeout(timer);
      reject(signal?.reason as Error);
    };
    if (signal?.aborted) return reject(signal.reason as Error);
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", end);
      resolve();
    }, milliseconds);
    signal?.addEventListener("abort", end, { once: true });
  });
}
