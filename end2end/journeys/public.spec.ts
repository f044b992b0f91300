import { expect } from "@playwright/test";
import { accessible, demoPage, noSideways, picturesLoaded, test, url } from "./help.ts";

const search = (words: string): string => `${demoPage()}?q=${encodeURIComponent(words)}`;

test("the first page names itself and offers a search", async ({ page }) => {
  await page.goto(demoPage());
  await expect(page.getByRole("heading", { level: 1 })).toHaveCount(1);
  await expect(page.locator("input[type=search]").first()).toBeVisible();
  await accessible(page);
});

test("a search by meaning finds what the words do not say", async ({ page }) => {
  await page.goto(demoPage());
  await page.locator("input[type=search]").first().fill("striped animal of the african savanna");
  await page.locator("input[type=search]").first().press("Enter");
  await expect(page).toHaveURL(/striped/);
  await expect(page.getByRole("article").first()).toBeVisible();
  const titles = async (): Promise<string> => (await page.getByRole("article").locator("h3").allInnerTexts()).slice(0, 5).join(" ").toLowerCase();
  await expect.poll(titles).toContain("zebra");
  await picturesLoaded(page);
  await accessible(page);
});

test("a result opens as a page of its own and leads back", async ({ page }) => {
  await page.goto(search("tiger"));
  const first = page.getByRole("article").first().locator("h3");
  const title = (await first.innerText()).trim();
  await page.getByRole("article").first().getByRole("link", { name: title }).first().click();
  await expect(page.getByRole("heading", { level: 1 })).toContainText(title);
  await picturesLoaded(page);
  await accessible(page);
  await page.getByRole("navigation", { name: "Back" }).getByRole("link").click();
  await expect(page.getByRole("article").first()).toBeVisible();
});

test("a search with nothing to find says so and offers ways on", async ({ page }) => {
  await page.goto(`${search("tiger")}&f.category=nothing-of-this-name`);
  await expect(page.getByRole("article")).toHaveCount(0);
  await expect(page.getByRole("status").first()).toBeVisible();
  await accessible(page);
});

test.describe("without JavaScript", () => {
  test.use({ javaScriptEnabled: false });

  test("searching and opening a result work", async ({ page }) => {
    await page.goto(demoPage());
    await page.locator("input[type=search]").first().fill("planet with rings");
    await page.getByRole("button", { name: "Search" }).click();
    await expect(page.getByRole("article").first()).toBeVisible();
    await page.getByRole("article").first().getByRole("link").first().click();
    await expect(page.getByRole("heading", { level: 1 })).toBeVisible();
  });
});

test.describe("on a phone", () => {
  test.use({ viewport: { width: 390, height: 844 }, hasTouch: true });

  test("nothing scrolls sideways", async ({ page }) => {
    for (const address of [demoPage(), search("bird that cannot fly")]) {
      await page.goto(address);
      await noSideways(page);
    }
    await page.getByRole("article").first().getByRole("link").first().click();
    await expect(page).toHaveURL(/\/item\//);
    await noSideways(page);
  });
});

test("what a visitor types is shown as text", async ({ page }) => {
  const said: string[] = [];
  page.on("dialog", (dialog) => {
    said.push(dialog.message());
    void dialog.dismiss();
  });
  await page.goto(search(`"><img src=x onerror=alert(1)><script>alert(2)</script>`));
  await expect(page.locator("input[type=search]").first()).toHaveValue(/onerror/);
  expect(said).toEqual([]);
});

test("a page that does not exist is 404, and no search is indexed", async ({ page, request }) => {
  expect((await request.get(`${url()}/r/no-such-page`)).status()).toBe(404);
  await page.goto(search("owl"));
  await expect(page.locator('meta[name="robots"]')).toHaveAttribute("content", /noindex/);
});
