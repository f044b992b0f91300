import { join } from "node:path";
import { expect, type Locator, type Page } from "@playwright/test";
import { byWords, fiveAtOnce, onPage, type Members } from "../pages.ts";
import { accessible, noSideways, picture, test, watch } from "./help.ts";

const photo = (name: string): string => join(import.meta.dirname, "../../demo/pictures", name);
const articles = (page: Page): Locator => page.getByRole("article");
const box = (page: Page): Locator => page.locator("input[type=search]");
const filters = (page: Page): Locator => page.getByRole("complementary", { name: "Filters" });
const chips = (page: Page): Locator => page.getByRole("list", { name: "Filters in force" });
const said = (page: Page): Locator => page.locator(".sr[aria-live=polite]");

/** A page that was loaded anew has forgotten this. */
const mark = (page: Page): Promise<void> => page.evaluate(() => void Object.assign(window, { marked: true }));
const isMarked = (page: Page): Promise<boolean> => page.evaluate(() => "marked" in window);

test("filters are chosen and dropped without loading the page, and Back undoes each", async ({ page }) => {
  const faults = watch(page);
  await onPage(page, "picture-book-search", byWords, async (address) => {
    const searched = `${address}?query=bird`;
    await page.goto(searched);
    await mark(page);
    const first = filters(page).getByRole("link").first();
    const key = (await first.getAttribute("data-keep")) ?? "";
    expect(key).toMatch(/^category=./);
    await first.focus();
    await page.keyboard.press("Enter");
    await expect(page).toHaveURL(/query=bird&f\.category=/);
    // The focus is where it was: at the same value, which is in force now.
    const chosen = filters(page).locator("a[aria-current=true]");
    await expect(chosen).toBeFocused();
    await expect(chosen).toHaveAttribute("data-keep", key);
    await expect(chips(page).getByRole("link")).toHaveAccessibleName(/^Drop the filter Chapter: /);
    await expect(said(page)).toHaveText(/^\d+ results? for “bird”/);
    await expect(articles(page).first()).toBeVisible();
    await accessible(page);
    await picture(page, "public-filtered");

    // Another search keeps what is chosen.
    await box(page).fill("fish");
    await expect(page).toHaveURL(/query=fish&f\.category=/);
    await expect(chips(page).getByRole("link")).toHaveCount(1);
    await box(page).fill("bird");
    await expect(page).toHaveURL(/query=bird&f\.category=/);

    await chips(page).getByRole("link").focus();
    await page.keyboard.press("Enter");
    await expect(page).toHaveURL(searched);
    await expect(chips(page)).toHaveCount(0);
    await expect(filters(page).locator("a:focus")).toHaveAttribute("data-keep", key);

    await page.goBack();
    await expect(page).toHaveURL(/query=bird&f\.category=/);
    await expect(chips(page).getByRole("link")).toHaveCount(1);
    await page.goBack();
    await expect(page).toHaveURL(searched);
    await expect(filters(page).locator("a[aria-current]")).toHaveCount(0);
    await page.goForward();
    await expect(filters(page).locator("a[aria-current=true]")).toHaveAttribute("data-keep", key);
    expect(await isMarked(page)).toBe(true);
    expect(faults).toEqual([]);
  });
});

test("a filter that finds nothing is dropped where it says so", async ({ page }) => {
  await onPage(page, "picture-book-search", byWords, async (address) => {
    await page.goto(`${address}?query=bird&f.category=nothing-of-this-name`);
    await mark(page);
    await expect(articles(page)).toHaveCount(0);
    const way = page.getByRole("link", { name: /^without Chapter: / });
    await way.focus();
    await page.keyboard.press("Enter");
    await expect(articles(page).first()).toBeVisible();
    await expect(page).toHaveURL(`${address}?query=bird`);
    // What had the focus is gone: one goes on at the results.
    await expect(page.locator("[data-results]")).toBeFocused();
    expect(await isMarked(page)).toBe(true);
  });
});

test("pages of results, suggestions and what is like a result are fetched, and Back leads to where one was", async ({ page }) => {
  const faults = watch(page);
  await onPage(page, "picture-book-search", fiveAtOnce, async (address) => {
    // So low that one goes down to the other pages.
    await page.setViewportSize({ width: 1280, height: 600 });
    await page.goto(address);
    await mark(page);
    await page.getByRole("navigation", { name: "Suggestions" }).getByRole("link", { name: "a big cat" }).click();
    await expect(box(page)).toHaveValue("a big cat");
    await expect(page).toHaveURL(/query=a\+big\+cat/);
    await expect(said(page)).toHaveText(/results? for “a big cat”/);
    const pages = page.getByRole("navigation", { name: "Pages" });
    await pages.getByRole("link", { name: "Next" }).click();
    await expect(page).toHaveURL(/page=2/);
    await expect(pages.locator("[aria-current=page]")).toHaveText("2");
    // They are seen from the first one, and the keyboard goes on there.
    await expect(articles(page).first()).toBeInViewport();
    await expect(page.locator("[data-results]")).toBeFocused();

    await articles(page).first().getByRole("link", { name: /^Find similar to / }).click();
    await expect(page).toHaveURL(/similar_to=/);
    await expect(box(page)).toHaveValue("");
    await expect(said(page)).toHaveText(/results? like /);
    await expect(page.getByRole("link", { name: /^Drop: like / })).toBeVisible();
    await page.goBack();
    await expect(page).toHaveURL(/query=a\+big\+cat&page=2/);
    await expect(box(page)).toHaveValue("a big cat");
    await page.goBack();
    await expect(pages.locator("[aria-current=page]")).toHaveText("1");
    // As far down as the link that led on.
    await expect.poll(() => page.evaluate(() => scrollY)).toBeGreaterThan(0);
    await page.goBack();
    await expect(page).toHaveURL(address);
    await expect(box(page)).toHaveValue("");
    await expect(page.getByRole("navigation", { name: "Suggestions" })).toBeVisible();
    expect(await isMarked(page)).toBe(true);
    expect(faults).toEqual([]);
  });
});

test("the slash key goes to the search, and is a letter where one types", async ({ page }) => {
  await onPage(page, "picture-book-search", byWords, async (address) => {
    await page.goto(`${address}?query=bird`);
    await filters(page).getByRole("link").first().focus();
    await page.keyboard.press("/");
    await expect(box(page)).toBeFocused();
    // What is there is taken for what is to be typed over.
    await page.keyboard.type("a/b");
    await expect(box(page)).toHaveValue("a/b");

    await page.goto(`${address}?query=bird`);
    await page.getByRole("button", { name: /^Enlarge the picture of / }).first().click();
    const dialog = page.getByRole("dialog", { name: "Pictures of the results" });
    await expect(dialog).toBeVisible();
    await page.keyboard.press("/");
    await expect(box(page)).not.toBeFocused();
    await expect(dialog).toBeVisible();
  });
});

test("a picture is enlarged to the one that was put in, where that is shown", async ({ page }) => {
  const faults = watch(page);
  const shown = (exposed: string[]) => (): Members => ({
    display_config: {
      title: "Look alike",
      inputs: [{ field_name: "picture", field_schema: { type: "image" }, input_type: "image", label: "Picture", required: false }],
      exposed_fields: exposed,
    },
  });
  /** The picture in the lightbox, the one of its card, and the large one that the card names. */
  const enlarged = async (address: string): Promise<{ image: Locator; small: string; full: string | null }> => {
    await page.goto(address);
    await page.getByLabel("Picture", { exact: true }).setInputFiles(photo("zebra.jpg"));
    const enlarge = page.getByRole("button", { name: /^Enlarge the picture of / }).first();
    await enlarge.click();
    const image = page.getByRole("dialog", { name: "Pictures of the results" }).getByRole("img");
    await expect.poll(() => image.evaluate((image: HTMLImageElement) => image.naturalWidth)).toBeGreaterThan(0);
    const small = await articles(page).first().locator(".media img").evaluate((image: HTMLImageElement) => image.src);
    return { image, small, full: await enlarge.getAttribute("data-full") };
  };
  await onPage(page, "picture-book-by-picture", shown(["title", "picture"]), async (address) => {
    const { image, full } = await enlarged(address);
    expect(full).toContain("/v1/blobs/");
    await expect(image).toHaveAttribute("src", full ?? "");
    // Where it does not come, the small one is there.
    const { pathname } = new URL(full ?? "", address);
    await page.route((at) => at.pathname === pathname, (route) => route.abort());
    const failed = page.waitForEvent("requestfailed");
    const again = await enlarged(address);
    await failed;
    await expect(again.image).toHaveAttribute("src", again.small);
    await page.unrouteAll();
  });
  await onPage(page, "picture-book-by-picture", shown(["title"]), async (address) => {
    const { image, small, full } = await enlarged(address);
    expect(full).toBeNull();
    await expect(image).toHaveAttribute("src", small);
  });
  // What was kept back above is told by the browser.
  expect(faults.filter((fault) => !fault.includes("ERR_FAILED"))).toEqual([]);
});

/** One word of two, of which one has to be chosen. */
const ofTwo = (demo: Members): Members => ({
  display_config: {
    ...demo,
    inputs: [{ field_name: "query", field_schema: { type: "text", enum: ["zebra", "tiger"] }, input_type: "multiselect", label: "Animal" }],
  },
});

test("boxes of which one has to be ticked are asked for before anything is searched", async ({ page }) => {
  await onPage(page, "picture-book-search", ofTwo, async (address) => {
    await page.goto(address);
    const zebra = page.getByRole("checkbox", { name: "zebra" });
    await page.getByRole("button", { name: "Search" }).click();
    await expect(zebra).toBeFocused();
    expect(await zebra.evaluate((input: HTMLInputElement) => input.validationMessage)).toBe("Choose at least one.");
    await expect(page).toHaveURL(address);
    await zebra.check();
    await expect(page).toHaveURL(/query=zebra/);
    await expect(articles(page).first()).toContainText("Zebra");
    await accessible(page);
  });
});

test("what is wrong with a field is said beside it, as long as it is", async ({ page }) => {
  const number = (demo: Members): Members => ({
    display_config: { ...demo, inputs: [{ field_name: "query", field_schema: { type: "integer" }, input_type: "text", label: "Number", required: false }] },
  });
  await onPage(page, "picture-book-search", number, async (address) => {
    await page.goto(address);
    const field = page.getByLabel("Number", { exact: true });
    await field.fill("1.5");
    await expect(page.getByRole("alert")).toContainText("Check the search");
    await expect(field).toHaveAttribute("aria-invalid", "true");
    await expect(field).toHaveAccessibleDescription("Enter a whole number.");
    await expect(field).toBeFocused();
    await accessible(page);
    await field.fill("3");
    await expect(page.getByText("Enter a whole number.")).toHaveCount(0);
    await expect(field).not.toHaveAttribute("aria-invalid");
    await expect(field).toHaveValue("3");
  });
});

test.describe("without JavaScript", () => {
  test.use({ javaScriptEnabled: false });

  test("filters are links, and a box that has to be ticked is asked for by the server", async ({ page }) => {
    await onPage(page, "picture-book-search", byWords, async (address) => {
      await page.goto(`${address}?query=bird`);
      await filters(page).getByRole("link").first().click();
      await expect(page).toHaveURL(/query=bird&f\.category=/);
      await chips(page).getByRole("link").click();
      await expect(page).toHaveURL(`${address}?query=bird`);
    });
    await onPage(page, "picture-book-search", ofTwo, async (address) => {
      await page.goto(address);
      await page.getByRole("button", { name: "Search" }).click();
      await expect(page.getByRole("alert")).toContainText("Check the search");
      await expect(page.getByRole("group", { name: "Animal" })).toContainText("Choose at least one.");
      await page.getByRole("checkbox", { name: "zebra" }).check();
      await page.getByRole("button", { name: "Search" }).click();
      await expect(articles(page).first()).toContainText("Zebra");
    });
  });
});

test.describe("on a phone", () => {
  test.use({ viewport: { width: 390, height: 844 }, hasTouch: true });

  test("filters that are folded out stay so", async ({ page }) => {
    await onPage(page, "picture-book-search", byWords, async (address) => {
      await page.goto(`${address}?query=bird`);
      await mark(page);
      const first = filters(page).getByRole("link").first();
      await expect(first).toBeHidden();
      await filters(page).getByText("Filters", { exact: true }).tap();
      await first.tap();
      await expect(page).toHaveURL(/f\.category=/);
      await expect(filters(page).locator("a[aria-current=true]")).toBeVisible();
      await chips(page).getByRole("link").tap();
      await expect(chips(page)).toHaveCount(0);
      // Nothing is chosen any more, and they are folded out all the same.
      await expect(first).toBeVisible();
      await noSideways(page);
      expect(await isMarked(page)).toBe(true);
    });
  });
});
