import type { Middleware } from "openapi-fetch";

/** One fault of a request that broke the declared shape. */
export interface Violation {
  /** Where: `body`, `query` or `path`, then names and places. */
  loc: (string | number)[];
  msg: string;
  type: string;
  input?: unknown;
}

/** What the server said no with. */
export class LoupeError extends Error {
  override readonly name = "LoupeError";
  readonly status: number;
  /** Stable, such as `NotFoundError`; `ValidationError` for a request that breaks the declared shape. */
  readonly type: string;
  /** Stable and narrower than the type, such as `name_taken`, where there is one. */
  readonly code: string | undefined;
  readonly details: Record<string, unknown>;
  /** The faults of a request that breaks the declared shape. */
  readonly violations: Violation[];
  /** For the log of the server. */
  readonly requestId: string | undefined;

  constructor(response: Response, body: unknown) {
    const { error, detail } = (typeof body === "object" && body !== null ? body : {}) as {
      error?: { message?: string; type?: string; code?: string; details?: Record<string, unknown> };
      detail?: Violation[];
    };
    const violations = Array.isArray(detail) ? detail : [];
    const faults = violations.map(({ loc, msg }) => `${loc.join(".")}: ${msg}`).join("; ");
    super(error?.message ?? (faults || `the server answered ${response.status}`));
    this.status = response.status;
    this.type = error?.type ?? (violations.length > 0 ? "ValidationError" : "InternalServerError");
    this.code = error?.code ?? (error?.details?.["code"] as string | undefined);
    this.details = error?.details ?? {};
    this.violations = violations;
    this.requestId = response.headers.get("x-request-id") ?? undefined;
  }
}

/** Throws what is refused. */
export const refusals: Middleware = {
  async onResponse({ response }) {
    if (response.ok) return undefined;
    const body: unknown = await response
      .clone()
      .json()
      .catch(() => undefined);
    throw new LoupeError(response, body);
  },
};
