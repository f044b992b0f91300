import { expect, type Page } from "@playwright/test";
import { accessible, demoPage, inDemo, noSideways, send, steady, test } from "./help.ts";

type Display = Record<string, unknown>;

/** A template as an owner may write one: the first fields in every place that there is. */
function own(display: Display): Display {
  const [first, second, third, fourth] = display.exposed_fields as string[];
  const card = { heading: [first], eyebrow: [second], line: [third], text: [fourth] };
  const template = { character: "media-search", picture: { place: "beside", ratio: "4/5" }, card };
  return { template_type: "shop-window", extensions: { ...(display.extensions as object | undefined), template } };
}

/** Templates, what tells each from the others, and the proportions of its own pictures. */
const TEMPLATES: [name: string, cards: string, pictures: string][] = [
  ["document-search", "t-document", "3/4"],
  ["media-search", "t-media", "16/9"],
  ["portrait-gallery", "t-portrait", "4/5"],
  ["plain", "t-custom", "16/9"],
  ["masonry", "m-masonry", "16/9"],
  ["own", "t-own", "4/5"],
];

/** Without what the demo says of its pictures: every template has its own proportions, and fills them. */
function ownPictures(display: Display): Display {
  const { result_card: card, ...components } = display.components as { result_card: Display };
  const { thumbnail_aspect_ratio: _, thumbnail_fit: __, ...rest } = card;
  return { ...display, components: { ...components, result_card: rest } };
}

/** Pictures of the page for the documentation, in the folder that `LOUPE_JOURNEY_PICTURES` names. */
async function pictures(page: Page, address: string, name: string): Promise<void> {
  const folder = process.env.LOUPE_JOURNEY_PICTURES;
  if (!folder) return;
  await page.goto(address);
  for (const colorScheme of ["light", "dark"] as const) {
    for (const [size, width, height] of [["desktop", 1280, 800], ["phone", 390, 780]] as const) {
      await page.setViewportSize({ width, height });
      await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
      await page.waitForLoadState("networkidle");
      await page.screenshot({ path: `${folder}/${name}-${size}-${colorScheme}.jpg`, type: "jpeg", quality: 60 });
    }
  }
  await page.emulateMedia({ colorScheme: null, reducedMotion: null });
}

test("every template is whole on a phone and on a wide screen, in light, dark and forced colours", async ({ page }) => {
  const namespace = await inDemo(page, "Published pages");
  const listed = await send(page, "GET", "/v1/retrievers/published", undefined, namespace);
  const [published] = listed.results as { retriever_id: string; display_config: Display }[];
  const path = `/v1/retrievers/${published.retriever_id}/publish`;
  const { retriever_config: _, ...before } = published.display_config;
  const change = (display: Display) => send(page, "PATCH", path, { display_config: display }, namespace);
  const results = `${demoPage()}?q=${encodeURIComponent("a bird")}`;
  await steady(page);
  try {
    for (const [name, characters, proportions] of TEMPLATES) {
      const { template_type: __, layout: ___, theme: ____, ...rest } = ownPictures(before);
      const apart: Record<string, Display> = { own: own(rest), plain: {}, masonry: { layout: { mode: "masonry" } } };
      const chosen: Display = apart[name] ?? { template_type: name };
      await change({
        ...rest,
        ...chosen,
        theme: { primary_color: "#b4530a" },
        extensions: { ...((chosen.extensions ?? rest.extensions) as object | undefined), color_scheme: "auto" },
      });
      for (const width of [320, 1440]) {
        await page.setViewportSize({ width, height: 900 });
        await page.goto(results);
        await expect(page.locator("body")).toHaveClass(new RegExp(characters));
        await expect(page.getByRole("article").first()).toBeVisible();
        const ratio = await page.evaluate(() => getComputedStyle(document.documentElement).getPropertyValue("--thumb-ratio"));
        expect(ratio.trim(), `${name}'s pictures`).toBe(proportions);
        await noSideways(page);
        await page.waitForLoadState("networkidle");
        const moved = await page.evaluate(() => (window as unknown as { shifted: number }).shifted);
        expect(moved, `${name} at ${width} moves`).toBeLessThan(0.001);
        await accessible(page);
        await page.emulateMedia({ forcedColors: "active" });
        await accessible(page);
        await page.emulateMedia({ forcedColors: null });
        const item = await page.locator("article a.cover").first().getAttribute("href");
        // Before anything is asked, and what was found. Their own colours are the same on every screen.
        for (const other of [demoPage(), new URL(item ?? "", demoPage()).href]) {
          await page.goto(other);
          await expect(page.locator("body")).toHaveClass(new RegExp(characters));
          await expect(page.getByRole("heading", { level: 1 })).toBeVisible();
          await noSideways(page);
          if (width === 320) await accessible(page);
          await page.emulateMedia({ forcedColors: "active" });
          await accessible(page);
          await page.emulateMedia({ forcedColors: null });
        }
      }
      await pictures(page, results, `template-${name}`);
    }
  } finally {
    await change(before);
  }
});
