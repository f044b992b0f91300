import { expect, test, type Page } from "@playwright/test";
import { call, origin, serve, signUp, visit } from "../apps.ts";
import { start, type Running } from "../server.ts";

const PAGE = '<!doctype html><html lang="en"><head><title>App</title></head><body><h1>App</h1></body></html>';

let server: Running;
test.beforeAll(async () => {
  server = await start({ demo: false });
});
test.afterAll(() => server.stop());

/** What a page at another origin gets of an address: nothing, or what it is. */
const reach = (page: Page, address: string, init: RequestInit = {}): Promise<string> =>
  page.evaluate(
    async ([address, init]) => {
      try {
        const answer = await fetch(address, init);
        return `${answer.type} ${answer.status} ${(await answer.text()).slice(0, 200)}`;
      } catch {
        return "refused";
      }
    },
    [address, init] as const,
  );

test("two apps and the console share no cookie, no storage and no answer", async ({ browser }) => {
  await serve(server, "one", { "index.html": PAGE }, { mode: "clerk" });
  const app = await serve(server, "two", { "index.html": PAGE }, { mode: "clerk" });
  const [one, two] = [origin(server, "one"), origin(server, "two")];
  const context = await browser.newContext();

  // The owner is signed in to the console, Ada to the first app, which keeps things in every store that there is.
  const desk = await context.newPage();
  await desk.goto(`${server.url}/console/`);
  await desk.getByLabel("API key").fill(server.key);
  await desk.getByRole("button", { name: "Sign in" }).click();
  await expect(desk.getByRole("heading", { level: 1, name: "Namespaces" })).toBeVisible();
  const first = await context.newPage();
  await first.goto(`${one}/_auth/sign-up`);
  await signUp(first, server, "ada@example.com");
  await expect.poll(() => reach(first, "/_auth/me")).toContain("ada@example.com");
  await first.evaluate(async () => {
    localStorage.setItem("secret", "of one");
    sessionStorage.setItem("secret", "of one");
    document.cookie = "secret=of-one; path=/";
    await (await caches.open("secret")).put("/secret", new Response("of one"));
    await new Promise((resolve) => (indexedDB.open("secret").onsuccess = resolve));
    (window as unknown as { heard: unknown[] }).heard = [];
    new BroadcastChannel("loupe-auth").onmessage = (event) => (window as unknown as { heard: unknown[] }).heard.push(event.data);
  });

  // The session belongs to one host, and no script sees it.
  const session = (await context.cookies(one)).find((cookie) => cookie.name === "loupe_app");
  expect(session).toMatchObject({ domain: "one.localhost", path: "/", httpOnly: true, sameSite: "Lax" });
  expect(await first.evaluate(() => document.cookie)).not.toContain("loupe_app");

  const second = await context.newPage();
  await second.goto(two);
  const cookies = async (): Promise<string[]> => (await context.cookies(two)).map((cookie) => cookie.name);
  expect(await cookies()).not.toContain("loupe_app");
  const found = await second.evaluate(async () => [
    localStorage.length,
    sessionStorage.length,
    document.cookie,
    (await caches.keys()).length,
    (await indexedDB.databases()).length,
  ]);
  expect(found).toEqual([0, 0, "", 0, 0]);
  expect(await reach(second, "/_auth/me")).toContain("401");

  // Nothing that another origin answers is read: not with cookies, not by the addresses of this machine.
  const port = new URL(server.url).port;
  for (const address of [`${one}/`, `${one}/_auth/me`, `${one}/_auth/users`, `${one}/_auth/session`, `${one}/api/retrievers`, `http://127.0.0.1:${port}/v1/me`, `http://localhost:${port}/v1/me`, `${server.url}/console/`]) {
    expect(await reach(second, address, { credentials: "include" }), address).toBe("refused");
    expect(await reach(second, address, { credentials: "include", mode: "no-cors" }), address).toMatch(/^opaque 0 $|^refused$/);
  }
  // On its own host there is no server but the app: no operation of the API, no console.
  expect(await reach(second, "/v1/me")).toContain("404");
  expect(await reach(second, "/v1/openapi.json")).toContain("404");
  expect(await reach(second, "/console/")).not.toContain("Loupe console");

  // A window that it opened tells it nothing.
  for (const [address, name] of [[one, "one"], [`${server.url}/console/`, "the console"]] as const) {
    const opened = context.waitForEvent("page");
    await second.evaluate((address) => {
      (window as unknown as { other: Window | null }).other = window.open(address);
    }, address);
    const other = await opened;
    await other.waitForLoadState();
    const seen = await second.evaluate(() => {
      const other = (window as unknown as { other: Window & typeof globalThis }).other;
      const trials = [() => other.document.cookie, () => other.localStorage.length, () => other.sessionStorage.length, () => other.location.href];
      return trials.map((trial) => {
        try {
          return String(trial());
        } catch {
          return "refused";
        }
      });
    });
    expect(seen, name).toEqual(["refused", "refused", "refused", "refused"]);
    await other.close();
  }

  // A frame stays empty, of the app and of the console.
  for (const address of [one, `${one}/_auth/sign-in`, `${server.url}/console/`]) {
    const text = await second.evaluate(async (address) => {
      const frame = document.createElement("iframe");
      frame.src = address;
      document.body.append(frame);
      await new Promise((resolve) => setTimeout(resolve, 500));
      const read = frame.contentDocument?.body?.textContent ?? "";
      return read;
    }, address);
    expect(text, address).toBe("");
  }
  for (const frame of second.frames().slice(1)) {
    expect(await frame.evaluate(() => document.body?.innerText ?? "").catch(() => ""), frame.url()).not.toMatch(/Sign in|API key|^App$/);
  }

  // A neighbour plants no session, ends none and acts as nobody.
  await second.evaluate(() => {
    for (const domain of ["localhost", ".localhost", "one.localhost"]) document.cookie = `loupe_app=planted; domain=${domain}; path=/`;
  });
  expect((await context.cookies(one)).filter((cookie) => cookie.name === "loupe_app").map((cookie) => cookie.value)).toEqual([session?.value]);
  for (const init of [
    { method: "POST", body: "everywhere=true", headers: { "content-type": "application/x-www-form-urlencoded" } },
    { method: "POST", body: '{"everywhere":true}', headers: { "content-type": "text/plain" } },
  ]) {
    await reach(second, `${one}/_auth/sign-out`, { ...init, credentials: "include", mode: "no-cors" });
    await reach(second, `${one}/api/retrievers/list`, { ...init, credentials: "include", mode: "no-cors" });
  }
  await second.evaluate((address) => {
    const form = Object.assign(document.createElement("form"), { method: "post", action: `${address}/_auth/sign-out` });
    document.body.append(form);
    form.submit();
  }, one);
  await second.waitForURL(`${one}/**`);
  await expect.poll(() => reach(first, "/_auth/me")).toContain("ada@example.com");

  // Another app has people of its own: nobody is signed in there, and what tabs tell each other stays with one app.
  await first.evaluate(() => ((window as unknown as { heard: unknown[] }).heard = []));
  await second.goto(`${two}/_auth/sign-up`);
  await signUp(second, server, "eve@example.com");
  await expect.poll(() => reach(second, "/_auth/me")).toContain("eve@example.com");
  expect(await reach(second, "/_auth/users")).not.toContain("ada@example.com");
  expect(await reach(first, "/_auth/users")).not.toContain("eve@example.com");
  expect(await first.evaluate(() => (window as unknown as { heard: unknown[] }).heard)).toEqual([]);
  const people = await call<{ users: { email: string }[] }>(server, "GET", `/v1/apps/${app}/users`);
  expect(people.users.map((one) => one.email)).toEqual(["eve@example.com"]);

  // The session of one app opens nothing at the other, and the owner's key was never in a browser of visitors.
  const stolen = await visit(`${two}/_auth/me`, { cookie: `loupe_app=${session?.value}` });
  expect(stolen.status).toBe(401);
  const kept = await desk.evaluate(() => [document.cookie, JSON.stringify(localStorage)]);
  expect(kept.join("")).not.toContain("loupe_sk_");
  expect((await context.cookies(server.url)).map((cookie) => cookie.name)).toEqual([]);
  await context.close();
});
