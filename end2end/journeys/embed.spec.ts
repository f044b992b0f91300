import { expect } from "@playwright/test";
import { once } from "node:events";
import { createServer } from "node:http";
import { accessible, demoPage, picture, test, url, watch } from "./help.ts";

const name = (): string => new URL(demoPage()).pathname.split("/").at(-1) ?? "";

test("a page of another site shows the search in a frame that is as high as what it shows", async ({ page, context }) => {
  // Another site, on an origin of its own.
  const site = createServer((_, answer) => {
    answer.setHeader("content-type", "text/html; charset=utf-8");
    answer.end(`<!doctype html><html lang="en"><title>A zoo</title><meta name="viewport" content="width=device-width">
      <body style="font:16px/1.5 system-ui;margin:2rem auto;max-width:60rem;padding:0 1rem"><main><h1>A zoo</h1><p>Find our animals.</p>
      <script src="${url()}/embed.js"></script>
      <loupe-search page="${name()}" label="Search our animals"></loupe-search><p>After it.</p></main></body></html>`);
  });
  site.listen(0, "127.0.0.2");
  await once(site, "listening");
  const address = site.address();
  if (!address || typeof address === "string") throw new Error("no address");

  const faults = watch(page);
  await page.goto(`http://127.0.0.2:${address.port}/`);
  const element = page.locator("loupe-search");
  const frame = element.locator("iframe");
  await expect(frame).toHaveAttribute("title", "Search our animals");
  const inside = frame.contentFrame();
  await expect(inside.locator("input[type=search]")).toBeVisible();
  await expect(inside.getByRole("link", { name: "Skip to the results" })).toHaveCount(0);
  const fits = async (): Promise<number> => {
    const shown = await inside.locator("body").evaluate((body) => body.scrollHeight);
    const box = await frame.boundingBox();
    return Math.abs((box?.height ?? 0) - shown);
  };
  await expect.poll(fits).toBeLessThan(3);
  // Not the height that it has before its page tells one.
  await expect.poll(async () => (await frame.boundingBox())?.height).toBeGreaterThan(400);
  await expect.poll(fits).toBeLessThan(3);

  await inside.locator("input[type=search]").fill("striped animal of the african savanna");
  await inside.locator("input[type=search]").press("Enter");
  await expect(inside.getByRole("article").first()).toBeVisible();
  await expect.poll(fits).toBeLessThan(3);
  const titles = async (): Promise<string> => (await inside.getByRole("article").locator("h3").allInnerTexts()).slice(0, 5).join(" ").toLowerCase();
  await expect.poll(titles).toContain("zebra");
  // The site around it stayed where it was, and is whole.
  expect(page.url()).toBe(`http://127.0.0.2:${address.port}/`);
  await accessible(page);
  await picture(page, "embed");

  const opened = context.waitForEvent("page");
  await inside.getByRole("article").first().getByRole("link").first().click();
  const item = await opened;
  await expect(item.getByRole("heading", { level: 1 })).toBeVisible();
  expect(item.url()).toContain(`/r/${name()}/item/`);

  // Another query by the attribute.
  await element.evaluate((one) => one.setAttribute("query", "planet with rings"));
  await expect(inside.locator("input[type=search]")).toHaveValue("planet with rings");
  await expect(inside.getByRole("article").first()).toBeVisible();
  expect(faults).toEqual([]);
  site.close();
});
