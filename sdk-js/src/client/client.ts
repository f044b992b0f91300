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
  /** The id of an upload that failed on its way: what of the file is not there yet is sent. */
  resume?: string;
  /** Is told the id of the upload before the parts of a large file are sent, to resume it should they fail. */
  onBegin?: (upload: string) => void;
  /** Is told how many of all bytes are there, after each part. */
  onProgress?: (sent: number, total: number) => void;
  signal?: AbortSignal;
}

/** A longer file is sent in parts. */
const IN_ONE = 16 * 2 ** 20;

/** Parts that are sent side by side. */
const AT_ONCE = 3;

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

  /**
   * Uploads a file and makes an object of it; answers the object's id. A large file goes in parts, each of them tried again by
   * itself; what failed all the same goes on where it was with `resume`.
   */
  async upload(bucket: string, file: Upload): Promise<string> {
    const body = file.data instanceof Blob ? file.data : new Blob([file.data as BlobPart]);
    const { signal } = file;
    const found = file.resume ? await this.#begun(bucket, file.resume, body, signal) : await this.#begin(bucket, file, body);
    if (found.object_id) return found.object_id;
    const path = { bucket_identifier: bucket, upload_id: found.upload_id };
    if (file.resume || body.size > IN_ONE) await this.#parts(path, body, file);
    const { data: confirmed } = await this.api.POST("/v1/buckets/{bucket_identifier}/uploads/{upload_id}/confirm", {
      params: { path },
      body: {},
      signal,
    });
    if (!confirmed?.object_id) throw new Error("the upload was confirmed without an object");
    return confirmed.object_id;
  }

  /** The file of a document: its own part of it where it has one. The answer can be read whole, or as a stream. */
  async downloadDocument(collection: string, document: string, signal?: AbortSignal): Promise<Response> {
    const { data } = await this.api.GET("/v1/collections/{collection_identifier}/documents/{document_id}/download", {
      params: { path: { collection_identifier: collection, document_id: document } },
      signal,
    });
    return this.#fetch(data?.download_url, signal);
  }

  /** The file of an object: that of a member of the bucket's schema, or the first. */
  async downloadObject(bucket: string, object: string, more: { property?: string; signal?: AbortSignal } = {}): Promise<Response> {
    const { property, signal } = more;
    const { data } = await this.api.GET("/v1/buckets/{bucket_identifier}/objects/{object_identifier}", {
      params: { path: { bucket_identifier: bucket, object_identifier: object }, query: { return_presigned_urls: true } },
      signal,
    });
    const files = (data?.blobs ?? []).filter((blob) => blob.presigned_url);
    const file = files.find((blob) => !property || blob.property === property);
    return this.#fetch(file?.presigned_url, signal);
  }

  /** Announces a file, and sends it where it goes in one piece. */
  async #begin(bucket: string, file: Upload, body: Blob): Promise<Schemas["UploadResponse"]> {
    const contentType = file.contentType ?? (body.type || "application/octet-stream");
    const { signal } = file;
    const { data: upload } = await this.api.POST("/v1/buckets/{bucket_identifier}/uploads", {
      params: { path: { bucket_identifier: bucket } },
      body: {
        filename: file.filename,
        content_type: contentType,
        file_size_bytes: body.size,
        ...(file.fields && { object_metadata: file.fields }),
        ...(file.property && { blob_property: file.property }),
      },
      signal,
    });
    if (!upload) throw new Error("the server answered without an upload");
    if (body.size <= IN_ONE) {
      await this.#fetch(upload.presigned_url, signal, { method: "PUT", body, headers: { "content-type": contentType } });
    } else {
      file.onBegin?.(upload.upload_id);
    }
    return upload;
  }

  /** An upload that was begun with a file of this size. */
  async #begun(bucket: string, id: string, body: Blob, signal?: AbortSignal): Promise<Schemas["UploadResponse"]> {
    const { data: upload } = await this.api.GET("/v1/buckets/{bucket_identifier}/uploads/{upload_id}", {
      params: { path: { bucket_identifier: bucket, upload_id: id } },
      signal,
    });
    if (upload?.file_size_bytes !== body.size) throw new Error("the upload was begun with another file");
    return upload;
  }

  /** Sends the parts of a file that are not there yet. Nothing is left on its way when it ends. */
  async #parts(path: { bucket_identifier: string; upload_id: string }, body: Blob, { onProgress, signal }: Upload): Promise<void> {
    const { data } = await this.api.POST("/v1/buckets/{bucket_identifier}/uploads/{upload_id}/parts", { params: { path }, signal });
    const waiting = (data?.parts ?? []).filter((part) => !part.is_there);
    let there = waiting.reduce((rest, part) => rest - (part.last_byte + 1 - part.first_byte), body.size);
    onProgress?.(there, body.size);
    const drain = async (): Promise<void> => {
      for (let part = waiting.shift(); part; part = waiting.shift()) {
        const bytes = body.slice(part.first_byte, part.last_byte + 1);
        try {
          await this.#fetch(part.presigned_url, signal, { method: "PUT", body: bytes, headers: part.headers ?? {} });
        } catch (error) {
          waiting.length = 0;
          throw error;
        }
        there += bytes.size;
        onProgress?.(there, body.size);
      }
    };
    const ended = await Promise.allSettled(Array.from({ length: AT_ONCE }, drain));
    const failed = ended.find((one): one is PromiseRejectedResult => one.status === "rejected");
    if (failed) throw failed.reason;
  }

  /** Asks an address that carries its own signature: a key has no business there. */
  async #fetch(address: string | null | undefined, signal?: AbortSignal, how: RequestInit = {}): Promise<Response> {
    if (!address) throw new Error("the server gave no address for the file");
    const request = new Request(new URL(address, this.#options.url), { ...how, signal });
    const answer = await retrying(this.#send, this.#options)(request);
    if (!answer.ok) throw new LoupeError(answer, await answer.json().catch(() => undefined));
    return answer;
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
