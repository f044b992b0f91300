import AxeBuilder from "@axe-core/playwright";
import { expect, type Page } from "@playwright/test";

const set = (name: string): string => {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is set by setup.ts`);
  return value;
};

export const url = (): string => set("LOUPE_JOURNEY_URL");
export const key = (): string => set("LOUPE_JOURNEY_KEY");
export const demoPage = (): string => set("LOUPE_JOURNEY_PAGE");

/** No violation of the accessibility rules, in light and in dark. */
export async function accessible(page: Page): Promise<void> {
  for (const colorScheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
    // Colours that are still on their way from one scheme to the other have no contrast worth measuring.
    await page.evaluate(async () => {
      await new Promise(requestAnimationFrame);
      await Promise.allSettled(document.getAnimations().map((animation) => animation.finished));
    });
    const found = await new AxeBuilder({ page })
      .withTags(["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"])
      .analyze();
    const faults = found.violations.map((rule) => `${colorScheme} ${rule.id}: ${rule.nodes.map((node) => node.target).join(" | ")}`);
    expect(faults, page.url()).toEqual([]);
  }
  await page.emulateMedia({ colorScheme: null, reducedMotion: null });
}

/** The page is no wider than the window. */
export async function noSideways(page: Page): Promise<void> {
  // A page whose styles are still on their way is as wide as it likes.
  await page.waitForLoadState("load");
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  expect(wide, `${page.url()} scrolls sideways by ${wide} px`).toBeLessThanOrEqual(0);
}

/** Every picture that was asked for arrived. */
export async function picturesLoaded(page: Page): Promise<void> {
  const images = page.locator("main img");
  expect(await images.count()).toBeGreaterThan(0);
  await images.first().scrollIntoViewIfNeeded();
  await expect
    .poll(() => images.first().evaluate((image: HTMLImageElement) => image.complete && image.naturalWidth > 0))
    .toBe(true);
}
