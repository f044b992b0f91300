import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";

import { start, type Running } from "../../end2end/server.ts";
import { Loupe, LoupeError } from "../dist/client/client.js";

describe("the client on a real server", () => {
  let server: Running;
  let loupe: Loupe;
  let namespace: string;

  before(async () => {
    server = await start({ demo: false });
    const admin = new Loupe({ url: server.url, key: server.key });
    const { data } = await admin.api.POST("/v1/namespaces", { body: { namespace_name: "sdk" } });
    namespace = data?.namespace_id ?? "";
    loupe = admin.in(namespace);
  });
  after(() => server.stop());

  it("uploads, processes, searches and follows the change feed", { timeout: 300_000 }, async () => {
    const { data: bucket } = await loupe.api.POST("/v1/buckets", {
      body: { bucket_name: "stories", bucket_schema: { properties: { title: { type: "string" }, story: { type: "text" } } } },
    });
    const id = bucket?.bucket_id ?? "";
    await loupe.api.POST("/v1/collections", {
      body: {
        collection_name: "passages",
        source: { type: "bucket", bucket_ids: [id] },
        feature_extractor: { feature_extractor_name: "text_extractor", version: "v1", field_passthrough: [{ source_path: "title" }] },
      },
    });
    const stories = { Whale: "The largest animal that ever lived swims in every ocean.", Bread: "Flour, water, salt and yeast, baked until the crust sings." };
    const objects = await Promise.all(
      Object.entries(stories).map(([title, story]) =>
        loupe.upload(id, { filename: `${title}.txt`, contentType: "text/plain", data: story, fields: { title } }),
      ),
    );
    assert.equal(new Set(objects).size, 2);
    const batch = await loupe.process(id, objects);
    assert.equal(batch.status, "COMPLETED", JSON.stringify(batch));
    const task = await loupe.task(batch.task_id ?? "");
    assert.equal(task.status, "COMPLETED");

    const { data: retriever } = await loupe.api.POST("/v1/retrievers", {
      body: {
        retriever_name: "search",
        collection_identifiers: ["passages"],
        input_schema: { query: { type: "text", required: true } },
        stages: [
          {
            stage_name: "search",
            stage_type: "filter",
            config: {
              stage_id: "feature_search",
              parameters: {
                searches: [
                  { feature_uri: "loupe://text_extractor@v1/all_minilm_l6_v2_v1", query: { input_mode: "text", value: "{{INPUT.query}}" }, top_k: 5 },
                ],
                final_top_k: 1,
              },
            },
          },
        ],
      },
    });
    const found = await loupe.search(retriever?.retriever_id ?? "", { query: "baking a loaf" }, { limit: 1 });
    const first = found[0] as { title?: string; document_id?: string };
    assert.equal(first.title, "Bread");
    const file = await loupe.downloadDocument("passages", first.document_id ?? "");
    assert.equal(await file.text(), stories.Bread);

    const written = new Set<string>();
    for await (const event of loupe.events({ type: "collection.documents.written" })) {
      for (const document of event.payload?.["document_ids"] as string[]) written.add(document);
      if (written.size === 2) break;
    }
  });

  it("sends a large file in parts, goes on where it was, and reads it back", { timeout: 300_000 }, async () => {
    const { data: bucket } = await loupe.api.POST("/v1/buckets", {
      body: { bucket_name: "volumes", bucket_schema: { properties: { content: { type: "text" } } } },
    });
    const id = bucket?.bucket_id ?? "";
    const data = "All whales breathe air. ".repeat(750_000);
    const last = "bytes 16777216-17999999/18000000";
    const sent: string[] = [];
    let failures = 3;
    const flaky = new Loupe({
      url: server.url,
      key: server.key,
      namespace,
      retries: 1,
      longestPause: 20,
      fetch: async (request) => {
        const range = request.headers.get("content-range");
        if (range) sent.push(range);
        if (range === last && failures-- > 0) throw new TypeError("the connection broke");
        return fetch(request);
      },
    });
    const begun: string[] = [];
    const there: number[] = [];
    const file = {
      filename: "volume.txt",
      contentType: "text/plain",
      data,
      onBegin: (upload: string) => begun.push(upload),
      onProgress: (bytes: number) => there.push(bytes),
    };
    // The last of three parts fails twice, then once more when only it is sent.
    await assert.rejects(flaky.upload(id, file), { message: "the connection broke" });
    assert.deepEqual([sent.length, there.at(0), there.at(-1)], [4, 0, 16_777_216]);
    await assert.rejects(flaky.upload(id, { ...file, data: "another", resume: begun[0] }), { message: "the upload was begun with another file" });
    const object = await flaky.upload(id, { ...file, resume: begun[0] });
    assert.deepEqual([sent.length, there.at(-1), begun.length], [6, 18_000_000, 1]);
    assert.equal(await flaky.upload(id, { ...file, resume: begun[0] }), object);
    const back = await loupe.downloadObject(id, object, { property: "content" });
    assert.ok((await back.text()) === data);
    await assert.rejects(loupe.downloadObject(id, object, { property: "cover" }), { message: "the server gave no address for the file" });
  });

  it("throws what the server refuses, with its type and its place", async () => {
    const missing = loupe.api.GET("/v1/buckets/{bucket_identifier}", { params: { path: { bucket_identifier: "bkt_none" } } });
    await assert.rejects(missing, (error: unknown) => {
      assert.ok(error instanceof LoupeError);
      assert.deepEqual([error.status, error.type], [404, "NotFoundError"]);
      assert.ok(error.requestId);
      return true;
    });
    // @ts-expect-error: the types know that a bucket has a name
    const wrong = loupe.api.POST("/v1/buckets", { body: { bucket_schema: { properties: {} } } });
    await assert.rejects(wrong, (error: unknown) => {
      assert.ok(error instanceof LoupeError);
      assert.deepEqual([error.status, error.type, error.violations[0]?.loc], [422, "ValidationError", ["body", "bucket_name"]]);
      return true;
    });
    const stranger = new Loupe({ url: server.url, key: "loupe_sk_wrong" });
    await assert.rejects(stranger.api.GET("/v1/me"), { status: 401, type: "AuthenticationError" });
  });

  it("sends again what there was no room for, and does nothing twice", async () => {
    const sent: string[] = [];
    const flaky = new Loupe({
      url: server.url,
      key: server.key,
      longestPause: 20,
      fetch: async (request) => {
        sent.push(request.headers.get("idempotency-key") ?? "");
        if (sent.length === 1) return new Response(null, { status: 503, headers: { "retry-after": "1" } });
        const answer = await fetch(request);
        // The second answer is lost on its way.
        if (sent.length === 2) throw new TypeError("the connection broke");
        return answer;
      },
    });
    const { data } = await flaky.api.POST("/v1/namespaces", { body: { namespace_name: "once" } });
    assert.equal(sent.length, 3);
    assert.equal(new Set(sent).size, 1);
    assert.ok(sent[0]);
    const { data: list } = await flaky.api.POST("/v1/namespaces/list", { body: { search: "once" } });
    assert.deepEqual(list?.results.map((one) => one.namespace_id), [data?.namespace_id]);
  });

  it("names every POST but a stream", async () => {
    const sent: (string | null)[] = [];
    const watched = new Loupe({
      url: server.url,
      key: server.key,
      fetch: async (request) => {
        sent.push(request.headers.get("idempotency-key"));
        return Response.json({});
      },
    });
    for (const stream of [false, true]) {
      await watched.api.POST("/v1/retrievers/{retriever_id}/execute", { params: { path: { retriever_id: "ret_1" } }, body: { inputs: {}, stream } });
    }
    assert.ok(sent[0]);
    assert.equal(sent[1], null);
  });

  it("gives up when it is told to", async () => {
    const stop = new AbortController();
    const waiting = (async () => {
      for await (const _ of loupe.events({ type: "alert.triggered", signal: stop.signal })) assert.fail("there is none");
    })();
    setTimeout(() => stop.abort(), 100);
    await assert.rejects(waiting, { name: "AbortError" });
  });
});
