import createClient, { type Client } from "openapi-fetch";

import { LoupeError, refusals } from "./error.js";
import { retrying, type RetryOptions } from "./retry.js";
import type { components, paths } from "./schema.js";

export { LoupeError, type Violation } from "./error.js";
export type { components, operations, paths } from "./schema.js";

type Schemas = components["schemas"];

/** A person who signed in to the app. `role`, a word of the app's owner, is told of whoever looks at the page and of nobody else. */
export type AppUser = Schemas["AppEndUser"];
export type Retriever = Schemas["RetrieverModelOutput"];

/** Who looks at the page. */
export interface Session {
  /** Whether the app has sign-in at all. */
  hasSignIn: boolean;
  user: AppUser | null;
}

export interface Door {
  /** The path of the app that signing in leads to; the page itself by default. */
  returnTo?: string;
  /** In a small window, so that the page stays as it is. */
  popup?: boolean;
}

/** What the server puts into every page of an app with sign-in. */
export interface LoupeAuth {
  readonly isSignedIn: boolean;
  readonly user: AppUser | null;
  onReady(callback: (auth: LoupeAuth) => void): void;
  showSignIn(options?: Door): void;
  showSignUp(options?: Door): void;
  /** The person's own, where the app's owner allows passkeys. */
  showPasskeys?(options?: Door): void;
  /** The person's own, to look at and to end. */
  showSessions?(options?: Door): void;
  showAccount?(options?: Door): void;
  signOut(options?: { everywhere?: boolean }): Promise<void>;
}

declare global {
  interface Window {
    LoupeAuth?: LoupeAuth;
  }
}

export interface AppOptions extends RetryOptions {
  /** The app's own address; that of the page by default. */
  url?: string;
  fetch?: (request: Request) => Promise<Response>;
}

export interface Searching {
  limit?: number;
  /** Whether documents come with addresses of their pictures and files. */
  pictures?: boolean;
  signal?: AbortSignal;
}

/**
 * A hosted app as its own pages use it: who is signed in, and the API as far as the app's owner opened it, with the owner's
 * authority and the visitor's session. There is no key. What is refused is thrown as a {@link LoupeError}: 401 for whoever is not
 * signed in, 404 for what the owner did not open, 429 for too much.
 */
export class LoupeApp {
  /** Every operation, typed; those that the owner did not open answer 404. */
  readonly api: Client<paths>;
  readonly #url: string;
  readonly #send: (request: Request) => Promise<Response>;

  constructor(options: AppOptions = {}) {
    this.#url = (options.url ?? location.origin).replace(/\/+$/, "");
    this.#send = retrying(options.fetch ?? ((request) => globalThis.fetch(request)), options);
    // The session is a cookie of this origin, and goes nowhere else.
    this.api = createClient<paths>({ baseUrl: `${this.#url}/api`, fetch: this.#send, credentials: "same-origin" });
    this.api.use(refusals);
  }

  /** Who looks at the page, once that is known. */
  async session(): Promise<Session> {
    const auth = page();
    if (auth) {
      await new Promise<void>((resolve) => auth.onReady(() => resolve()));
      return { hasSignIn: true, user: auth.user };
    }
    // A page without the object is one of an app without sign-in.
    if (globalThis.document) return { hasSignIn: false, user: null };
    const answer = await this.#ask("GET", "/_auth/session");
    if (answer.status === 404) return { hasSignIn: false, user: null };
    const { user } = (await said(answer)) as { user: AppUser | null };
    return { hasSignIn: true, user };
  }

  /** Calls back with who looks at the page, and again when somebody else does, also by another tab. Answers how to stop. */
  onSession(listener: (session: Session) => void, failed?: (error: unknown) => void): () => void {
    let told: string | null | undefined;
    let over = false;
    const tell = async (): Promise<void> => {
      const session = await this.session();
      const id = session.user?.id ?? null;
      if (over || id === told) return;
      told = id;
      listener(session);
    };
    const hear = (): void => void tell().catch((error: unknown) => failed?.(error));
    hear();
    globalThis.document?.addEventListener("loupe-auth", hear);
    return () => {
      over = true;
      globalThis.document?.removeEventListener("loupe-auth", hear);
    };
  }

  showSignIn(options?: Door): void {
    door().showSignIn(options);
  }

  showSignUp(options?: Door): void {
    door().showSignUp(options);
  }

  /** Signs out, and loads the page anew where there is one. */
  async signOut(options: { everywhere?: boolean } = {}): Promise<void> {
    const auth = page();
    if (auth) return auth.signOut(options);
    await said(await this.#ask("POST", "/_auth/sign-out", options));
  }

  /** Everybody who signed in to the app, for those who did, unless its owner closed this. */
  async users(): Promise<AppUser[]> {
    return (await said(await this.#ask("GET", "/_auth/users"))) as AppUser[];
  }

  /** What there is to search with. */
  async retrievers(signal?: AbortSignal): Promise<Retriever[]> {
    const { data } = await this.api.POST("/v1/retrievers/list", { body: {}, signal });
    return data?.results ?? [];
  }

  /** Executes a retriever; answers its documents. */
  async search(retriever: string, inputs: Record<string, unknown>, more: Searching = {}) {
    const { signal, pictures, ...body } = more;
    const { data } = await this.api.POST("/v1/retrievers/{retriever_id}/execute", {
      params: { path: { retriever_id: retriever } },
      body: { inputs, ...body, ...(pictures && { return_presigned_urls: true }) },
      signal,
    });
    return data?.documents ?? [];
  }

  #ask(method: "GET" | "POST", path: string, body?: unknown): Promise<Response> {
    const sent = body === undefined ? {} : { body: JSON.stringify(body), headers: { "content-type": "application/json" } };
    return this.#send(new Request(this.#url + path, { method, credentials: "same-origin", cache: "no-store", ...sent }));
  }
}

function page(): LoupeAuth | undefined {
  return globalThis.window?.LoupeAuth;
}

function door(): LoupeAuth {
  const auth = page();
  if (!auth) throw new Error("this app has no sign-in");
  return auth;
}

async function said(answer: Response): Promise<unknown> {
  const body: unknown = await answer.json().catch(() => undefined);
  if (!answer.ok) throw new LoupeError(answer, body);
  return body;
}
