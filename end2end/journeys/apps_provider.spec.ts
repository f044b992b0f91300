import { expect, test, type BrowserContext, type Page } from "@playwright/test";
import { generateKeyPair } from "jose";
import { call, origin, serve } from "../apps.ts";
import { CLIENT, start as startProvider, type Forge, type Running as Provider } from "../provider.ts";
import { start, type Running } from "../server.ts";

const PAGE = '<!doctype html><html lang="en"><head><title>Club</title></head><body><h1>Club</h1></body></html>';

let server: Running;
let provider: Provider;
let home: string;
let elsewhere: string;
let app: string;

test.beforeAll(async () => {
  // Whose browser it is, is told by the proxy that the tests are: each attack comes from an address of its own.
  server = await start({ demo: false, settings: { LOUPE_OUTBOUND__ALLOW: '["127.0.0.2"]', LOUPE_TRUST_PROXY: "true" } });
  [home, elsewhere] = [origin(server, "club"), origin(server, "elsewhere")];
  provider = await startProvider([home, elsewhere].map((one) => `${one}/_auth/callback/oidc`));
  await call(server, "POST", "/v1/organizations/secrets", { secret_name: "idp", secret_value: CLIENT.secret });
  const auth = { mode: "sso_oidc", oidc_issuer: provider.issuer, oidc_client_id: CLIENT.id, oidc_client_secret_name: "idp" };
  app = await serve(server, "club", { "index.html": PAGE }, auth);
  await serve(server, "elsewhere", { "index.html": PAGE }, auth);
});
test.afterAll(async () => {
  await server.stop();
  await provider.stop();
});

let number = 0;
/** A browser at an address of its own. */
async function visitor(page: Page): Promise<void> {
  number += 1;
  await page.setExtraHTTPHeaders({ "x-forwarded-for": `10.${number}.0.1` });
}

/** Goes from the app to the provider, and signs in there unless the provider knows the person. */
async function leave(page: Page, person: string, returnTo = "/"): Promise<void> {
  await page.goto(`${home}/_auth/sign-in?${new URLSearchParams({ return_to: returnTo })}`);
  await page.getByRole("button", { name: /^Continue with/ }).click();
  await page.waitForURL((address) => address.pathname.startsWith("/interaction") || (address.origin === home && address.pathname !== "/_auth/sign-in"));
  if (new URL(page.url()).origin === home) return;
  await page.locator('input[name="login"]').fill(person);
  await page.locator('input[name="password"]').fill("anything");
  await page.locator('button[type="submit"]').click();
  await page.getByRole("button", { name: "Continue" }).click();
  await page.waitForURL((address) => address.origin === home);
}

const who = (page: Page): Promise<string> => page.evaluate(async () => String((await (await fetch("/_auth/session")).json()).user?.email ?? "nobody"));

test("a certified provider signs people in, and the same person is one", async ({ page, browser }) => {
  await visitor(page);
  await leave(page, "ada", "/films?x=1");
  expect(page.url()).toBe(`${home}/films?x=1`);
  // Its ID tokens say only who it is; the address is asked for.
  expect(await who(page)).toBe("ada@example.com");
  const again = await (await browser.newContext()).newPage();
  await visitor(again);
  await leave(again, "ada");
  expect(await who(again)).toBe("ada@example.com");
  const people = await call<{ total: number }>(server, "GET", `/v1/apps/${app}/users`);
  expect(people.total).toBe(1);
  // The test of the owner finds it.
  const test = await call<{ success: boolean; providers: { message: string; callback_url: string }[] }>(server, "POST", `/v1/apps/${app}/sign-in/test`);
  expect([test.success, test.providers[0]?.callback_url]).toEqual([true, `${home}/_auth/callback/oidc`]);
  expect(test.providers[0]?.message).toContain(`${provider.issuer}/auth`);
  await again.context().close();
});

/** One thing that is not as it should be: the way back, the browser, or what the provider says. */
interface Attack {
  name: string;
  back?: (address: URL, context: BrowserContext) => void | Promise<void>;
  forge?: Forge;
  somebodyElse?: boolean;
  person?: string;
}

const claim = (change: Record<string, unknown>): Forge => (claims, sign) => sign({ ...claims, ...change });
const without = (name: string): Forge => (claims, sign) => {
  const { [name]: _, ...rest } = claims;
  return sign(rest);
};
const query = (change: Record<string, string | null>) => (address: URL): void => {
  for (const [name, value] of Object.entries(change)) {
    if (value === null) address.searchParams.delete(name);
    else address.searchParams.set(name, value);
  }
};
const encoded = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64url");

const ATTACKS: Attack[] = [
  { name: "a wrong state", back: query({ state: "wrong" }) },
  { name: "no state", back: query({ state: null }) },
  { name: "another browser", back: (_, context) => context.clearCookies({ name: "loupe_flow" }) },
  { name: "a planted cookie", back: (_, context) => context.addCookies([{ name: "loupe_flow", value: "planted", url: home }]) },
  { name: "another provider's callback", back: (address) => void (address.pathname = "/_auth/callback/google") },
  { name: "another issuer answers", back: query({ iss: "https://evil.example" }) },
  { name: "another app's callback", back: (address) => void (address.host = new URL(elsewhere).host) },
  { name: "the provider refuses", back: query({ code: null, error: "access_denied" }) },
  { name: "another code", back: query({ code: "swapped" }) },
  { name: "no code", back: query({ code: null }) },
  { name: "another nonce", forge: claim({ nonce: "another" }) },
  { name: "no nonce", forge: without("nonce") },
  { name: "another audience", forge: claim({ aud: "somebody" }) },
  { name: "one of several audiences", forge: claim({ aud: ["somebody", CLIENT.id] }) },
  { name: "given to somebody else", forge: claim({ azp: "somebody" }) },
  { name: "a token of another issuer", forge: claim({ iss: "https://evil.example" }) },
  { name: "an expired token", forge: claim({ exp: 1_000_000 }) },
  { name: "a token of nobody", forge: claim({ sub: "" }) },
  { name: "no signature", forge: async (claims) => `${encoded({ alg: "none" })}.${encoded(claims)}.` },
  { name: "signed with the client's secret", forge: (claims, sign) => sign(claims, { alg: "HS256" }, new TextEncoder().encode(CLIENT.secret.padEnd(32))) },
  { name: "signed with another key", forge: async (claims, sign) => sign(claims, {}, (await generateKeyPair("RS256")).privateKey) },
  { name: "signed with an unknown key", forge: (claims, sign) => sign(claims, { kid: "two" }) },
  { name: "claims changed after they were signed", forge: async (claims, sign) => { const [head, , signature] = (await sign(claims)).split("."); return `${head}.${encoded({ ...claims, sub: "ada" })}.${signature}`; } },
  { name: "what is told is of somebody else", somebodyElse: true },
  { name: "an address that nobody verified", person: "unproven" },
];

for (const [at, attack] of ATTACKS.entries()) {
  test(`attack ${at + 1}, ${attack.name}: no session`, async ({ page, context }) => {
    await visitor(page);
    provider.forge = attack.forge;
    provider.somebodyElse = attack.somebodyElse;
    try {
      let back: URL | undefined;
      if (attack.back) {
        // The way back is held: a redirection cannot be, so those of the provider are followed here.
        await page.route(`${provider.issuer}/interaction/**`, async (route) => {
          let answer = await route.fetch({ maxRedirects: 0 });
          let place = answer.headers()["location"];
          while (place && !place.startsWith(home)) {
            answer = await context.request.get(new URL(place, provider.issuer).href, { maxRedirects: 0 });
            place = answer.headers()["location"];
          }
          if (!place) return route.fulfill({ response: answer });
          back = new URL(place);
          await route.fulfill({ contentType: "text/html", body: `<meta http-equiv="refresh" content="0;url=${home}/">` });
        });
      }
      await leave(page, attack.person ?? "eve");
      if (attack.back) {
        await page.unroute(`${provider.issuer}/interaction/**`);
        if (!back) throw new Error("nobody came back");
        await attack.back(back, context);
        const answer = await page.goto(back.href);
        expect(answer?.status()).toBeGreaterThanOrEqual(400);
        expect(answer?.status()).toBeLessThan(500);
      }
      await expect(page.getByRole("alert")).toBeVisible();
      for (const one of [home, elsewhere]) expect((await context.cookies(one)).map((cookie) => cookie.name)).not.toContain("loupe_app");
      const people = await call<{ users: { email: string }[] }>(server, "GET", `/v1/apps/${app}/users`);
      expect(people.users.map((one) => one.email).filter((email) => email !== "ada@example.com")).toEqual([]);
    } finally {
      provider.forge = undefined;
      provider.somebodyElse = undefined;
    }
  });
}

test("a way is gone once, and leads nowhere but into the app", async ({ page, browser }) => {
  await visitor(page);
  let back = "";
  page.on("request", (request) => {
    if (request.url().includes("/_auth/callback/oidc?")) back = request.url();
  });
  for (const away of ["https://evil.example/", "//evil.example/", "/\\evil.example", "javascript:alert(1)"]) {
    await page.context().clearCookies({ name: "loupe_app" });
    await leave(page, "grace", away);
    expect(page.url()).toBe(`${home}/`);
    expect(await who(page)).toBe("grace@example.com");
  }
  // The same way a second time, in the browser that went it and in another one.
  await page.context().clearCookies({ name: "loupe_app" });
  expect((await page.goto(back))?.status()).toBe(400);
  expect(await who(page)).toBe("nobody");
  const other = await (await browser.newContext()).newPage();
  await visitor(other);
  expect((await other.goto(back))?.status()).toBe(400);
  expect(await who(other)).toBe("nobody");
  await other.context().close();
});
