import { expect, test } from "@playwright/test";
import { accessible } from "./help.ts";
import { start } from "../server.ts";

test("an empty console loads the demo with one button", async ({ page }) => {
  const running = await start({ demo: false });
  try {
    await page.goto(`${running.url}/console/`);
    await page.getByLabel("API key").fill(running.key);
    await page.getByRole("button", { name: "Sign in" }).click();
    await expect(page.getByRole("heading", { name: "No namespace yet" })).toBeVisible();
    await accessible(page);
    await page.getByRole("button", { name: "Load the demo" }).click();
    await expect(page.getByRole("progressbar", { name: "Progress of the demo" })).toBeVisible();
    await expect(page.getByRole("link", { name: "Open the search page" })).toBeVisible({ timeout: 300_000 });
    await accessible(page);
    const opened = page.waitForEvent("popup");
    await page.getByRole("link", { name: "Open the search page" }).click();
    await expect((await opened).locator("input[type=search]").first()).toBeVisible();
  } finally {
    await running.stop();
  }
});
