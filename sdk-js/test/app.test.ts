import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { request as ask } from "node:http";
import { after, before, describe, it } from "node:test";

import { start, type Running } from "../../end2end/server.ts";
import { LoupeApp, LoupeError, type LoupeAuth, type Session } from "../dist/client/app.js";
import { Loupe } from "../dist/client/client.js";

/** A browser at an app, as far as requests go: it finds names below localhost, says where it is, and keeps cookies. */
class Browser {
  readonly sent: Request[] = [];
  readonly cookies = new Map<string, string>();

  constructor(readonly origin: string) {}

  readonly fetch = async (request: Request): Promise<Response> => {
    this.sent.push(request.clone());
    const { host, port, pathname, search } = new URL(request.url);
    const body = Buffer.from(await request.arrayBuffer());
    const headers: Record<string, string> = { ...Object.fromEntries(request.headers), host };
    if (request.method !== "GET") headers["origin"] = this.origin;
    if (request.credentials !== "omit" && this.cookies.size > 0) {
      headers["cookie"] = [...this.cookies].map(([name, value]) => `${name}=${value}`).join("; ");
    }
    const place = { host: "127.0.0.1", port, path: pathname + search, method: request.method, headers };
    return new Promise((resolve, reject) => {
      const asked = ask(place, (answer) => {
        const pieces: Buffer[] = [];
        answer.on("data", (piece: Buffer) => pieces.push(piece));
        answer.on("end", () => {
          for (const line of answer.headers["set-cookie"] ?? []) this.keep(line);
          const status = answer.statusCode ?? 0;
          const told = Object.entries(answer.headers).filter((pair): pair is [string, string] => typeof pair[1] === "string");
          resolve(new Response(status === 204 ? null : Buffer.concat(pieces), { status, headers: told }));
        });
      });
      asked.on("error", reject);
      asked.end(body);
    });
  };

  /** A form of a page of the app. */
  async form(path: string, fields: Record<string, string>): Promise<number> {
    const request = new Request(this.origin + path, { method: "POST", body: new URLSearchParams(fields) });
    return (await this.fetch(request)).status;
  }

  private keep(line: string): void {
    const [name = "", value = ""] = line.split(";", 1)[0]?.split("=") ?? [];
    if (value) this.cookies.set(name, value);
    else this.cookies.delete(name);
  }
}

/** The link in the newest mail: a server without a mail server shows its mails in its log. */
async function token(log: string): Promise<string> {
  for (let tries = 0; tries < 600; tries += 1) {
    const found = [...readFileSync(log, "utf8").matchAll(/_auth\/verify\?token=([A-Za-z0-9]+)/g)].at(-1);
    if (found?.[1]) return found[1];
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error("no mail came");
}

describe("an app on a real server", () => {
  let server: Running;
  let admin: Loupe;
  let owner: Loupe;
  let id: string;
  let retriever: string;
  let origin: string;

  before(async () => {
    server = await start({ demo: false });
    origin = `http://reading-room.localhost:${new URL(server.url).port}`;
    admin = new Loupe({ url: server.url, key: server.key });
    const { data: namespace } = await admin.api.POST("/v1/namespaces", { body: { namespace_name: "films" } });
    const namespaceId = namespace?.namespace_id ?? "";
    owner = admin.in(namespaceId);
    await owner.api.POST("/v1/collections", {
      body: {
        collection_name: "films",
        source: { type: "direct_upsert" },
        feature_extractor: {
          feature_extractor_name: "passthrough_extractor",
          version: "v1",
          parameters: { vector_fields: [{ field: "embedding", name: "own", dimensions: 3 }] },
        },
      },
    });
    for (const title of ["Alien", "Brazil"]) {
      const path = { collection_identifier: "films" };
      await owner.api.POST("/v1/collections/{collection_identifier}/documents", { params: { path }, body: { title } });
    }
    const { data: made } = await owner.api.POST("/v1/retrievers", {
      body: {
        retriever_name: "titled",
        collection_identifiers: ["films"],
        input_schema: { title: { type: "text" } },
        stages: [
          {
            stage_name: "titled",
            stage_type: "filter",
            config: { stage_id: "attribute_filter", parameters: { field: "title", operator: "eq", value: "{{INPUT.title}}" } },
          },
        ],
      },
    });
    retriever = made?.retriever_id ?? "";
    const { data: app } = await admin.api.POST("/v1/apps", {
      body: { slug: "reading-room", meta: { title: "Reading room" }, build_config: { env_vars: { LOUPE_NAMESPACE: namespaceId } } },
    });
    id = app?.app_id ?? "";
    const path = { app_id: id };
    const files = { "index.html": "<!doctype html><h1>Reading room</h1>" };
    const { data: deploy } = await admin.api.POST("/v1/apps/{app_id}/deploy", { params: { path }, body: { source_files: files } });
    const place = { params: { path: { ...path, deploy_id: deploy?.deploy_id ?? "" } } };
    for (let tries = 0; tries < 1200; tries += 1) {
      const { data } = await admin.api.GET("/v1/apps/{app_id}/deploys/{deploy_id}", place);
      if (data?.status === "complete") return;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    throw new Error("the app is not served");
  });
  after(() => server.stop());

  it("searches with the owner's authority, without a key, and no further than the owner lets it", async () => {
    const browser = new Browser(origin);
    const app = new LoupeApp({ url: `${origin}/`, fetch: browser.fetch });
    assert.deepEqual(await app.session(), { hasSignIn: false, user: null });
    assert.deepEqual((await app.retrievers()).map((one) => one.retriever_name), ["titled"]);
    const found = await app.search(retriever, { title: "Brazil" }, { limit: 5, pictures: true });
    assert.deepEqual(found.map((one) => (one as { title?: string }).title), ["Brazil"]);

    await assert.rejects(app.api.GET("/v1/buckets"), (error: unknown) => {
      assert.ok(error instanceof LoupeError);
      assert.deepEqual([error.status, error.type], [404, "NotFoundError"]);
      return true;
    });
    assert.throws(() => app.showSignIn(), /no sign-in/);
    for (const request of browser.sent) {
      assert.ok(request.url.startsWith(`${origin}/`), request.url);
      assert.equal(request.credentials, "same-origin");
      assert.equal(request.headers.get("authorization"), null);
    }
  });

  it("knows who is signed in, and searches for them alone", async () => {
    await admin.api.PATCH("/v1/apps/{app_id}", {
      params: { path: { app_id: id } },
      body: { auth_config: { mode: "clerk", clerk_allowed_providers: ["email"] } },
    });
    const browser = new Browser(origin);
    const app = new LoupeApp({ url: origin, fetch: browser.fetch });
    assert.deepEqual(await app.session(), { hasSignIn: true, user: null });
    const signedOut = { name: "LoupeError", status: 401, code: "sign_in_required" };
    await assert.rejects(app.search(retriever, { title: "Alien" }), signedOut);
    await assert.rejects(app.users(), signedOut);

    const wanted = { email: "ada@example.com", password: "a lamp in the cave", name: "Ada" };
    assert.equal(await browser.form("/_auth/sign-up", wanted), 200);
    assert.equal(await browser.form("/_auth/verify", { token: await token(server.log) }), 303);
    const { user } = await app.session();
    // What somebody may do, and how they came, is told to them and to nobody else.
    assert.ok(user);
    const { role, signed_in_with: way, ...listed } = user;
    assert.deepEqual([listed.email, listed.name, role, way], ["ada@example.com", "Ada", "org:member", "password"]);
    assert.deepEqual(await app.users(), [listed]);
    assert.equal((await app.search(retriever, { title: "Alien" })).length, 1);
    // Nobody else's browser is signed in by it.
    const other = new LoupeApp({ url: origin, fetch: new Browser(origin).fetch });
    assert.equal((await other.session()).user, null);

    await app.signOut({ everywhere: true });
    assert.deepEqual(await app.session(), { hasSignIn: true, user: null });
    await assert.rejects(app.search(retriever, { title: "Alien" }), signedOut);
  });

  it("leaves signing in to the object that the server puts into the page", async () => {
    const asked: unknown[] = [];
    const ada = { id: "eu_1", email: "ada@example.com" };
    const auth = {
      isSignedIn: false,
      user: null as LoupeAuth["user"],
      onReady: (callback: (auth: LoupeAuth) => void) => setTimeout(() => callback(auth), 1),
      showSignIn: (options?: unknown) => asked.push(["in", options]),
      showSignUp: (options?: unknown) => asked.push(["up", options]),
      signOut: async (options?: unknown) => void asked.push(["out", options]),
    };
    const document = new EventTarget();
    Object.assign(globalThis, { window: { LoupeAuth: auth }, document });
    try {
      const fetch = (): Promise<Response> => Promise.reject(new Error("nothing is asked"));
      const app = new LoupeApp({ url: origin, fetch });
      const told: Session[] = [];
      const settle = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 20));
      const stop = app.onSession((session) => told.push(session));
      document.dispatchEvent(new Event("loupe-auth"));
      await settle();
      auth.user = ada;
      document.dispatchEvent(new Event("loupe-auth"));
      await settle();
      stop();
      auth.user = null;
      document.dispatchEvent(new Event("loupe-auth"));
      await settle();
      assert.deepEqual(told, [
        { hasSignIn: true, user: null },
        { hasSignIn: true, user: ada },
      ]);
      app.showSignIn({ popup: true });
      app.showSignUp({ returnTo: "/films" });
      await app.signOut({ everywhere: true });
      assert.deepEqual(asked, [["in", { popup: true }], ["up", { returnTo: "/films" }], ["out", { everywhere: true }]]);
    } finally {
      Reflect.deleteProperty(globalThis, "window");
      Reflect.deleteProperty(globalThis, "document");
    }
  });
});
