import { get, type IncomingMessage } from "node:http";
import { text as whole } from "node:stream/consumers";
import AxeBuilder from "@axe-core/playwright";
import { expect, test as base, type Locator, type Page } from "@playwright/test";
import type { Served } from "../setup.ts";

/** The server that took the place of this worker's first one. */
let another: Served | undefined;

/** Journeys on the server of the worker. One that is tried a second time finds a new one: nothing is left of the first try. */
export const test = base.extend<{ begun: void }>({
  begun: [
    async ({}, use, about) => {
      if (about.retry > 0) {
        const address = `${process.env.LOUPE_JOURNEY_ANOTHER}/${process.env.TEST_PARALLEL_INDEX}`;
        const answer = await new Promise<IncomingMessage>((resolve, reject) => get(address, resolve).once("error", reject));
        const said = await whole(answer);
        if (answer.statusCode !== 200) throw new Error(said);
        another = JSON.parse(said) as Served;
      }
      await use();
    },
    { auto: true, timeout: 10 * 60_000 },
  ],
});

/** The server of this worker. */
const served = (): Served => {
  if (another) return another;
  const value = process.env.LOUPE_JOURNEY_SERVERS;
  if (!value) throw new Error("LOUPE_JOURNEY_SERVERS is set by setup.ts");
  return (JSON.parse(value) as Served[])[Number(process.env.TEST_PARALLEL_INDEX)];
};

export const url = (): string => served().url;
export const key = (): string => served().key;
export const log = (): string => served().log;
export const demoPage = (): string => served().page;
export const resolver = (): number => served().resolver;

/** Whatever a page logs as an error or throws is a fault, also when the page looks right. */
export const watch = (page: Page): string[] => {
  const faults: string[] = [];
  page.on("pageerror", (error) => faults.push(error.message));
  page.on("console", (message) => {
    // The preview of a page is shown without its scripts, and browsers say so.
    const preview = /^Blocked (script execution|autofocusing).*sandboxed/.test(message.text());
    if (message.type() === "error" && !preview) faults.push(message.text());
  });
  return faults;
};

export const signIn = async (page: Page): Promise<void> => {
  await page.goto(`${url()}/console/`);
  await page.getByLabel("API key").fill(key());
  await page.getByRole("button", { name: "Sign in" }).click();
  await expect(page.getByRole("heading", { level: 1, name: "Namespaces" })).toBeVisible();
};

/** Opens a page of the demo's namespace by the side bar. */
export const open = async (page: Page, name: string): Promise<void> => {
  await page.getByRole("navigation", { name: "Console" }).getByRole("link", { name, exact: true }).click();
  await expect(page.getByRole("heading", { level: 1, name })).toBeVisible();
};

/** Signs in, opens a page of the demo's namespace and tells the namespace. */
export async function inDemo(page: Page, name: string): Promise<string> {
  await signIn(page);
  await page.getByRole("main").getByRole("link", { name: "demo", exact: true }).click();
  await open(page, name);
  await expect(page).toHaveURL(/\/ns\/[^/]+\//);
  return /\/ns\/([^/]+)\//.exec(page.url())?.[1] ?? "";
}

/** Adds one to a list of a form. Its first field is where the person is led: until then, what is typed could still go there. */
export async function add(form: Locator, name: string): Promise<void> {
  await form.getByRole("button", { name }).click();
  await expect(form.locator(":is(input, select, textarea):focus")).toBeVisible();
}

/** A call of the API that has to work, and its answer. */
export async function send(page: Page, method: string, path: string, data?: unknown, namespace?: string): Promise<Record<string, unknown>> {
  const headers = { Authorization: `Bearer ${key()}`, ...(namespace ? { "X-Namespace": namespace } : {}) };
  const answer = await page.request.fetch(`${url()}${path}`, { method, headers, data });
  const text = await answer.text();
  expect(answer.ok(), `${method} ${path}: ${text}`).toBe(true);
  return text ? (JSON.parse(text) as Record<string, unknown>) : {};
}

/** The page fits a phone, and is accessible there too. */
export async function phone(page: Page, seen?: Locator): Promise<void> {
  await page.setViewportSize({ width: 390, height: 844 });
  if (seen) await expect(seen).toBeVisible();
  await noSideways(page);
  await uncut(page);
  await accessible(page);
  await page.setViewportSize({ width: 1280, height: 900 });
}

/** All that the rows of tables have is in the window: nobody has to push a table aside for it. */
async function uncut(page: Page): Promise<void> {
  const beyond = (): Promise<string[]> =>
    page.evaluate(() => {
      const cells = [...document.querySelectorAll(".table tbody :is(th, td)")].filter((cell) => cell.checkVisibility());
      return cells.filter((cell) => cell.getBoundingClientRect().right > innerWidth).map((cell) => cell.textContent ?? "");
    });
  await expect.poll(beyond, { message: `${page.url()} has cells beyond the window`, timeout: 15_000 }).toEqual([]);
}

/** A picture of the page as it is, for people to look at, in the folder that `LOUPE_JOURNEY_PICTURES` names. */
export async function picture(page: Page, name: string): Promise<void> {
  const folder = process.env.LOUPE_JOURNEY_PICTURES;
  if (!folder) return;
  for (const colorScheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
    await settled(page);
    await page.screenshot({ path: `${folder}/${name}-${colorScheme}.png` });
  }
  await page.setViewportSize({ width: 390, height: 844 });
  await page.screenshot({ path: `${folder}/${name}-phone.png` });
  await page.setViewportSize({ width: 1280, height: 900 });
  await page.emulateMedia({ colorScheme: null, reducedMotion: null });
}

/** What is shown is what was asked for last: nothing is being fetched that will take its place. */
export async function fetched(page: Page): Promise<void> {
  await expect(page.locator('[aria-busy="true"]:visible')).toHaveCount(0);
}

/**
 * What is still being fetched is about to be replaced, and colours that are still on their way from one scheme to the
 * other have no contrast worth measuring. A page that follows something live may stay busy, and is then looked at so.
 */
async function settled(page: Page): Promise<void> {
  const busy = page.locator('[aria-busy="true"]:visible');
  await expect(busy).toHaveCount(0, { timeout: 3000 }).catch(() => undefined);
  await page.evaluate(async () => {
    await new Promise(requestAnimationFrame);
    // In what is not rendered, as the inside of closed details, time stands still: nothing there ever finishes. What turns
    // for ever does not, either.
    const moving = document.getAnimations().filter(({ effect }) => {
      const isSeen = (effect as KeyframeEffect).target?.checkVisibility();
      return isSeen && effect?.getComputedTiming().endTime !== Infinity;
    });
    await Promise.allSettled(moving.map((animation) => animation.finished));
  });
}

/** What the accessibility rules say of the page as it is. */
async function violations(page: Page, colorScheme: string): Promise<string[]> {
  await settled(page);
  // What a frame of the console shows is a page of its own, and looked at there.
  const axe = new AxeBuilder({ page })
    .exclude("iframe[sandbox]")
    .withTags(["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]);
  // Otherwise each of the five hundred looks opens an empty page, to put together there what was found in every frame.
  if (page.frames().length === 1) axe.setLegacyMode();
  const found = await axe.analyze();
  return found.violations.map((rule) => `${colorScheme} ${rule.id}: ${rule.nodes.map((node) => `${node.target}: ${node.any[0]?.message ?? ""}`).join(" | ")}`);
}

/** No violation of the accessibility rules, in light and in dark. What is seen while a page changes has to be gone at rest. */
export async function accessible(page: Page): Promise<void> {
  for (const colorScheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
    await expect.poll(() => violations(page, colorScheme), { message: page.url(), timeout: 60_000, intervals: [500, 2000, 5000] }).toEqual([]);
  }
  await page.emulateMedia({ colorScheme: null, reducedMotion: null });
}

/** The page is no wider than the window. */
export async function noSideways(page: Page): Promise<void> {
  // A page whose styles are still on their way is as wide as it likes.
  await page.waitForLoadState("load");
  const wide = (): Promise<number> => page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  await expect.poll(wide, { message: `${page.url()} scrolls sideways`, timeout: 15_000 }).toBeLessThanOrEqual(0);
}

/** Every picture that was asked for arrived. */
export async function picturesLoaded(page: Page): Promise<void> {
  const images = page.locator("main img");
  await expect(images).not.toHaveCount(0);
  await images.first().scrollIntoViewIfNeeded();
  await expect
    .poll(() => images.first().evaluate((image: HTMLImageElement) => image.complete && image.naturalWidth > 0))
    .toBe(true);
}

/** A reload of the page moves nothing that was already to be seen. */
export async function steady(page: Page): Promise<void> {
  await page.addInitScript(() => {
    const seen = window as unknown as { shifted: number; moved?: string[] };
    // A page that is looked at more than once has this more than once; each move is counted once.
    if (seen.moved) return;
    seen.shifted = 0;
    seen.moved = [];
    new PerformanceObserver((list) => {
      for (const entry of list.getEntries() as (PerformanceEntry & { value: number; sources: { node?: Element }[] })[]) {
        seen.shifted += entry.value;
        seen.moved?.push(...entry.sources.map(({ node }) => `${node?.nodeName}.${node?.className}`));
      }
    }).observe({ type: "layout-shift", buffered: true });
  });
  await page.reload();
  await expect(page.getByRole("heading", { level: 1 })).toBeVisible();
  await expect(page.locator(".skeleton")).toHaveCount(0);
  await page.waitForTimeout(300);
  const { shifted, moved } = await page.evaluate(() => {
    const seen = window as unknown as { shifted: number; moved: string[] };
    return { shifted: seen.shifted, moved: seen.moved };
  });
  expect(shifted, `${page.url()} moved ${moved.join(", ")}`).toBeLessThan(0.02);
}
