import AxeBuilder from "@axe-core/playwright";
import { expect, test, type Page } from "@playwright/test";
import { brotliCompressSync } from "node:zlib";
import { PASSWORD, origin, serve, signUp, visit } from "../apps.ts";
import { start, type Running } from "../server.ts";

// The app allows itself nothing but its own files: no inline script, no inline style, no other origin.
const PAGE = `<!doctype html><html lang="en"><head><title>Club</title>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'">
<link rel="icon" href="/icon.svg"><script src="/early.js"></script><script src="/late.js" defer></script></head>
<body><main><h1>Club</h1><p id="who">?</p><loupe-user-button></loupe-user-button></main></body></html>`;
const EARLY = `window.told = []; window.refused = [];
document.addEventListener("securitypolicyviolation", (event) => refused.push(event.violatedDirective + " " + event.blockedURI));
document.addEventListener("loupe-auth", (event) => told.push(event.detail.user ? event.detail.user.email : null));
LoupeAuth.onReady(() => { throw new Error("one caller's mistake"); });
LoupeAuth.onReady(() => { window.early = [LoupeAuth.isSignedIn, LoupeAuth.user && LoupeAuth.user.email]; });`;
const LATE = `addEventListener("load", () => setTimeout(() => LoupeAuth.onReady((auth) => {
  window.late = [auth === LoupeAuth, LoupeAuth.isSignedIn];
  document.getElementById("who").textContent = LoupeAuth.isSignedIn ? LoupeAuth.user.email : "nobody";
}), 200));
document.addEventListener("loupe-auth", (event) => { document.getElementById("who").textContent = event.detail.user ? event.detail.user.email : "nobody"; });`;
const ICON = '<svg xmlns="http://www.w3.org/2000/svg"/>';

type Seen = { early: unknown; late: unknown; told: unknown; refused: string[]; LoupeAuth: { isSignedIn: boolean; user: { email: string } | null; showSignIn(options?: object): void; showSignUp(options?: object): void; signOut(options?: object): Promise<void> } };

const seen = <T>(page: Page, read: (all: Seen) => T): Promise<T> => page.evaluate(`(${read.toString()})(window)`) as Promise<T>;

let server: Running;
let home: string;
test.beforeAll(async () => {
  server = await start({ demo: false });
  const files = { "index.html": PAGE, "early.js": EARLY, "late.js": LATE, "icon.svg": ICON };
  await serve(server, "club", files, { mode: "clerk", clerk_allowed_providers: ["email"] });
  home = origin(server, "club");
});
test.afterAll(() => server.stop());

test("the script works early and late, leads in and out, and every tab knows", async ({ browser }) => {
  const context = await browser.newContext();
  const page = await context.newPage();
  const thrown: string[] = [];
  page.on("pageerror", (error) => thrown.push(error.message));
  await page.goto(`${home}/films/7?x=1#scene`);
  await expect(page.locator("#who")).toHaveText("nobody");
  await expect.poll(() => seen(page, (all) => [all.early, all.late])).toEqual([[false, null], [true, false]]);
  expect(thrown).toEqual(["one caller's mistake"]);
  const script = (await visit(`${home}/_auth/sdk.js`)).text;
  expect(brotliCompressSync(script).length).toBeLessThan(8 * 1024);

  // Another tab, and one with the page of another person's browser.
  const other = await context.newPage();
  await other.goto(home);
  await expect(other.locator("#who")).toHaveText("nobody");
  const stranger = await (await browser.newContext()).newPage();
  await stranger.goto(home);

  await seen(page, (all) => all.LoupeAuth.showSignIn());
  await page.waitForURL(`${home}/_auth/sign-in?*`);
  expect(new URL(page.url()).searchParams.get("return_to")).toBe("/films/7?x=1#scene");
  await page.goBack();
  await expect(page.locator("#who")).toHaveText("nobody");
  await seen(page, (all) => all.LoupeAuth.showSignUp());
  await page.waitForURL(`${home}/_auth/sign-up?*`);
  await signUp(page, server, "ada@example.com");
  await page.waitForURL(`${home}/films/7?x=1#scene`);
  await expect(page.locator("#who")).toHaveText("ada@example.com");
  await expect.poll(() => seen(page, (all) => all.early)).toEqual([true, "ada@example.com"]);
  await expect(other.locator("#who")).toHaveText("ada@example.com");
  expect(await seen(other, (all) => all.LoupeAuth.isSignedIn)).toBe(true);
  await stranger.reload();
  await expect(stranger.locator("#who")).toHaveText("nobody");

  // The button, which is drawn under a policy that allows no inline style.
  const face = page.getByRole("button", { name: "Account of ada@example.com" });
  await face.click();
  // Its menu opens at it, and inside of the window.
  await expect(page.getByRole("button", { name: "Sign out" })).toBeInViewport({ ratio: 1 });
  const [button, menu] = await Promise.all([face.boundingBox(), page.locator("loupe-user-button [part=menu]").boundingBox()]);
  expect(menu?.y).toBeCloseTo((button?.y ?? 0) + (button?.height ?? 0) + 8, 0);
  expect(await face.evaluate((face) => getComputedStyle(face).borderRadius)).toBe("50%");
  await page.getByRole("button", { name: "Sign out" }).click();
  await expect(page.getByRole("button", { name: "Sign in" })).toBeVisible();
  await expect(other.locator("#who")).toHaveText("nobody");
  expect(await seen(page, (all) => all.LoupeAuth.user)).toBeNull();

  // In a window of its own, which closes by itself; the page is told without a reload.
  await other.evaluate(() => ((window as unknown as { kept: boolean }).kept = true));
  const opened = other.waitForEvent("popup");
  await seen(other, (all) => all.LoupeAuth.showSignIn({ popup: true }));
  const popup = await opened;
  await popup.getByLabel("E-mail").fill("ada@example.com");
  await popup.getByLabel("Password").fill(PASSWORD);
  // It may be gone before the click is told to be done.
  await Promise.all([popup.waitForEvent("close"), popup.getByRole("button", { name: "Sign in" }).click().catch(() => undefined)]);
  await expect(other.locator("#who")).toHaveText("ada@example.com");
  expect(await other.evaluate(() => (window as unknown as { kept?: boolean }).kept)).toBe(true);

  const strangerSignsIn = async (): Promise<void> => {
    await stranger.goto(`${home}/_auth/sign-in`);
    await stranger.getByLabel("E-mail").fill("ada@example.com");
    await stranger.getByLabel("Password").fill(PASSWORD);
    await stranger.getByRole("button", { name: "Sign in" }).click();
    await expect(stranger.locator("#who")).toHaveText("ada@example.com");
  };

  // One session is ended by itself.
  await strangerSignsIn();
  await other.getByRole("button", { name: "Account of ada@example.com" }).click();
  await expect(other.getByRole("button", { name: "Sessions" })).toBeInViewport({ ratio: 1 });
  await other.getByRole("button", { name: "Sessions" }).click();
  await expect(other.getByRole("heading", { name: "Sessions" })).toBeVisible();
  const sessions = other.getByRole("listitem");
  await expect(sessions).toHaveCount(2);
  await expect(sessions.filter({ hasText: "This browser" })).toContainText("Chrome on Linux");
  expect((await new AxeBuilder({ page: other }).analyze()).violations).toEqual([]);
  const folder = process.env.LOUPE_JOURNEY_PICTURES;
  if (folder) await other.screenshot({ path: `${folder}/app-sessions.png` });
  await sessions.filter({ hasNotText: "This browser" }).getByRole("button", { name: /^End / }).click();
  await expect(sessions).toHaveCount(1);
  await other.getByRole("link", { name: "Back to the app" }).click();
  await expect(other.locator("#who")).toHaveText("ada@example.com");
  await stranger.reload();
  await expect(stranger.locator("#who")).toHaveText("nobody");

  // Everywhere means every browser.
  await strangerSignsIn();
  await Promise.all([other.waitForEvent("load"), seen(other, (all) => void all.LoupeAuth.signOut({ everywhere: true }))]);
  await expect(other.locator("#who")).toHaveText("nobody");
  await stranger.reload();
  await expect(stranger.locator("#who")).toHaveText("nobody");

  for (const one of [page, other, stranger]) expect(await seen(one, (all) => all.refused)).toEqual([]);
  await stranger.context().close();
  await context.close();
});

test("an app without sign-in has no script, and its pages are left as they are", async ({ page }) => {
  await serve(server, "open", { "index.html": "<!doctype html><html lang=en><title>Open</title><h1>Open</h1>" });
  await page.goto(origin(server, "open"));
  expect(await page.evaluate(() => "LoupeAuth" in window)).toBe(false);
  expect((await visit(`${origin(server, "open")}/_auth/me`)).status).toBe(404);
});

test("a password is looked at, and the seconds of a wait pass; without a script the page tells them", async ({ browser }) => {
  const context = await browser.newContext();
  const page = await context.newPage();
  const refused: string[] = [];
  page.on("console", (message) => {
    if (message.text().includes("Content Security Policy")) refused.push(message.text());
  });
  await page.goto(`${home}/_auth/sign-in`);
  const field = page.getByLabel("Password");
  await field.fill(PASSWORD);
  await field.press("Tab");
  await expect(page.getByRole("button", { name: "Show password" })).toBeFocused();
  await page.keyboard.press("Enter");
  await expect(field).toHaveAttribute("type", "text");
  await expect(field).toHaveValue(PASSWORD);
  expect((await new AxeBuilder({ page }).analyze()).violations).toEqual([]);
  await page.getByRole("button", { name: "Hide password" }).click();
  await expect(field).toHaveAttribute("type", "password");

  const error = page.getByRole("alert");
  const guess = async (on: Page): Promise<void> => {
    await on.goto(`${home}/_auth/sign-in`);
    await on.getByLabel("E-mail").fill("nobody@example.com");
    await on.getByLabel("Password").fill("a lamp in the cove");
    await on.getByRole("button", { name: "Sign in" }).click();
    await expect(on.getByRole("alert")).toBeVisible();
  };
  const plain = await browser.newContext({ javaScriptEnabled: false });
  const still = await plain.newPage();
  await still.goto(`${home}/_auth/sign-in`);
  await expect(still.getByLabel("Password")).toBeVisible();
  await expect(still.locator("button[data-shows]")).toBeHidden();

  for (let tries = 0; tries < 5; tries += 1) await guess(page);
  await guess(page);
  await expect(error).toContainText(/Wait \d+ seconds/);

  await guess(still);
  await expect(still.getByRole("alert")).toContainText(/Wait \d+ seconds/);

  await expect(error).toHaveText("You can try again now.", { timeout: 20_000 });
  expect(refused).toEqual([]);
  await plain.close();
  await context.close();
});
