import createClient, { type Client } from "openapi-fetch";

import { LoupeError, refusals } from "./error.js";
import { retrying, wait, type RetryOptions } from "./retry.js";
import type { components, paths } from "./schema.js";

export { LoupeError, type Violation } from "./error.js";
export type { components, operations, paths } from "./schema.js";

type Schemas = components["schemas"];
export type Task = Schemas["TaskResponse"];
export type Batch = Schemas["BatchModel"];
export type ChangeEvent = Schemas["ChangeEventResponse"];
export type EventType = Schemas["WebhookEventType"];

export interface LoupeOptions extends RetryOptions {
  /** Where the server is, such as `http://127.0.0.1:8420`. */
  url: string;
  /** `loupe_sk_…`, `usr_sk_…` or `ret_sk_…`; without one only what is public answers. */
  key?: string;
  /** Id of the namespace that requests are about; each may name another in its own header. */
  namespace?: string;
  fetch?: (request: Request) => Promise<Response>;
}

export interface Waiting {
  /** Milliseconds between two looks, default 500. */
  every?: number;
  signal?: AbortSignal;
}

/** A file to upload. */
export interface Upload {
  filename: string;
  /** Its kind, such as `image/png`; that of a `Blob` by default. */
  contentType?: string;
  data: Blob | Uint8Array | string;
  /** Members of the object that is made of it. */
  fields?: Record<string, unknown>;
  /** The member of the bucket's schema that holds the file; the first that fits by default. */
  property?: string;
  signal?: AbortSignal;
}

/** The states that a task or a batch never leaves. */
const OVER = new Set(["COMPLETED", "COMPLETED_WITH_ERRORS", "FAILED", "CANCELED"]);

/**
 * A client: every operation, typed by the server's own description, as `GET`, `POST`, `PUT`, `PATCH` and `DELETE` on `api`, and
 * what takes several of them as methods. What the server refuses is thrown as a {@link LoupeError}.
 */
export class Loupe {
  readonly api: Client<paths>;
  readonly #options: LoupeOptions;
  readonly #send: (request: Request) => Promise<Response>;

  constructor(options: LoupeOptions) {
    this.#options = options;
    this.#send = options.fetch ?? ((request) => globalThis.fetch(request));
    this.api = createClient<paths>({
      baseUrl: options.url.replace(/\/+$/, ""),
      fetch: retrying(this.#send, options),
      headers: {
        ...(options.key && { Authorization: `Bearer ${options.key}` }),
        ...(options.namespace && { "X-Namespace": options.namespace }),
      },
    });
    this.api.use(refusals);
  }

  /** The same client, about another namespace. */
  in(namespace: string): Loupe {
    return new Loupe({ ...this.#options, namespace });
  }

  /** Uploads a file and makes an object of it; answers the object's id. */
  async upload(bucket: string, file: Upload): Promise<string> {
    const body = typeof file.data === "string" || file.data instanceof Blob ? file.data : new Blob([file.data as BlobPart]);
    const contentType = file.contentType ?? ((body instanceof Blob && body.type) || "application/octet-stream");
    const path = { bucket_identifier: bucket };
    const { signal } = file;
    const { data: upload } = await this.api.POST("/v1/buckets/{bucket_identifier}/uploads", {
      params: { path },
      body: {
        filename: file.filename,
        content_type: contentType,
        ...(file.fields && { object_metadata: file.fields }),
        ...(file.property && { blob_property: file.property }),
      },
      signal,
    });
    if (!upload?.presigned_url) throw new Error("the server gave no address to send the file to");
    // The address carries its own signature; a key has no business there.
    const sent = await retrying(this.#send, this.#options)(
      new Request(upload.presigned_url, { method: "PUT", body, headers: { "content-type": contentType }, signal }),
    );
    if (!sent.ok) throw new LoupeError(sent, await sent.json().catch(() => undefined));
    const { data: confirmed } = await this.api.POST("/v1/buckets/{bucket_identifier}/uploads/{upload_id}/confirm", {
      params: { path: { ...path, upload_id: upload.upload_id } },
      body: {},
      signal,
    });
    if (!confirmed?.object_id) throw new Error("the upload was confirmed without an object");
    return confirmed.object_id;
  }

  /** Processes objects of a bucket, all of them by default, and waits for the end. Failed objects are no error: see the batch. */
  async process(bucket: string, objects?: string[], waiting: Waiting = {}): Promise<Batch> {
    const path = { bucket_identifier: bucket };
    const { signal } = waiting;
    const { data: batch } = await this.api.POST("/v1/buckets/{bucket_identifier}/batches", {
      params: { path },
      body: objects ? { object_ids: objects } : {},
      signal,
    });
    const place = { params: { path: { ...path, batch_id: batch?.batch_id ?? "" } }, signal };
    await this.api.POST("/v1/buckets/{bucket_identifier}/batches/{batch_id}/submit", { ...place, body: {} });
    return this.#end(waiting, async () => {
      const { data } = await this.api.GET("/v1/buckets/{bucket_identifier}/batches/{batch_id}", place);
      return data as Batch;
    });
  }

  /** Waits until a task is over. */
  async task(id: string, waiting: Waiting = {}): Promise<Task> {
    return this.#end(waiting, async () => {
      const { data } = await this.api.GET("/v1/tasks/{task_id}", { params: { path: { task_id: id } }, signal: waiting.signal });
      return data as Task;
    });
  }

  /** Executes a retriever; answers its documents. */
  async search(retriever: string, inputs: Record<string, unknown>, more: { limit?: number; signal?: AbortSignal } = {}) {
    const { signal, ...body } = more;
    const { data } = await this.api.POST("/v1/retrievers/{retriever_id}/execute", {
      params: { path: { retriever_id: retriever } },
      body: { inputs, ...body },
      signal,
    });
    return data?.documents ?? [];
  }

  /** The change feed from a cursor on, or from the oldest event that is kept; waits for more at its end, for ever. */
  async *events(options: Waiting & { cursor?: string; type?: EventType } = {}): AsyncGenerator<ChangeEvent> {
    let { cursor } = options;
    for (;;) {
      const query = { limit: 1000, ...(cursor && { cursor }), ...(options.type && { event_type: options.type }) };
      const { data } = await this.api.GET("/v1/events", { params: { query }, signal: options.signal });
      for (const event of data?.results ?? []) yield event;
      cursor = data?.next_cursor ?? cursor;
      if (!data?.has_more) await wait(options.every ?? 500, options.signal);
    }
  }

  async #end<T extends { status?: string }>({ every = 500, signal }: Waiting, look: () => Promise<T>): Promise<T> {
    for (;;) {
      const seen = await look();
      if (seen.status && OVER.has(seen.status)) return seen;
      await wait(every, signal);
    }
  }
}
