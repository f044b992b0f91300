import { expect } from "@playwright/test";
import { accessible, open, phone, picture, send, signIn, steady, test, watch } from "./help.ts";

test("an alert is told as a sentence, tried, switched off and on, changed and removed", async ({ page }) => {
  const faults = watch(page);
  await signIn(page);
  const channels = [{ channel: "email", configs: { to_addresses: ["desk@example.com"] } }];
  const webhook = await send(page, "POST", "/v1/organizations/webhooks", { webhook_name: "desk", event_types: ["taxonomy.deleted"], channels });
  await page.getByRole("main").getByRole("link", { name: "demo", exact: true }).click();
  await open(page, "Alerts");
  await expect(page.getByRole("heading", { name: "No alert here" })).toBeVisible();
  await accessible(page);
  await page.getByRole("button", { name: "Create alert" }).first().click();
  const form = page.getByRole("dialog", { name: "Create an alert" });
  // What is typed goes into the first field, and what sends the form is in sight however long that is.
  await expect(form.getByLabel("Name", { exact: true })).toBeFocused();
  await expect(form.getByRole("button", { name: "Create", exact: true })).toBeInViewport({ ratio: 1 });
  await form.getByLabel("Name", { exact: true }).fill("zebras");
  await form.getByLabel("Retriever", { exact: true }).selectOption({ label: "picture-book-search" });
  await form.getByRole("group", { name: "Inputs" }).getByLabel(/^query/).fill("striped animal");
  await form.getByLabel("At least so many").fill("2");
  await expect(form.getByRole("status")).toHaveText("It fires when picture-book-search, asked for “striped animal”, finds at least 2.");
  await form.getByLabel("Looks", { exact: true }).selectOption("on_demand");
  await form.getByLabel("Kind", { exact: true }).selectOption("email");
  await form.getByLabel("To", { exact: true }).fill("desk@example.com");
  await accessible(page);
  await picture(page, "alert-form");
  await phone(page);
  await form.getByRole("button", { name: "Create", exact: true }).click();
  const row = page.getByRole("row", { name: /zebras/ });
  await expect(row).toContainText("picture-book-search, asked for “striped animal”, finds at least 2");

  await row.getByRole("button", { name: "Test now zebras" }).click();
  const history = page.getByRole("dialog", { name: "History of zebras" });
  const look = history.locator("tbody tr").first();
  await expect(look).toContainText("fired");
  // This server has no mail.
  await expect(look).toContainText("not configured");
  await accessible(page);
  await picture(page, "alert-history");
  await phone(page);
  await page.keyboard.press("Escape");
  await expect(row).toContainText(/just now| ago/);

  // What is rarer stands in a menu, which keys lead through.
  const more = row.getByRole("button", { name: "More for zebras" });
  const items = row.getByRole("menuitem");
  await more.press("Enter");
  await expect(more).toHaveAttribute("aria-expanded", "true");
  await expect(items).toHaveText(["Send a test", "Snooze", "Switch off", "Remove"]);
  await expect(items.first()).toBeFocused();
  await accessible(page);
  await picture(page, "alert-menu");
  await page.keyboard.press("ArrowUp");
  await expect(items.last()).toBeFocused();
  await page.keyboard.press("ArrowDown");
  await expect(items.first()).toBeFocused();
  await page.keyboard.press("Escape");
  await expect(items).toHaveCount(0);
  await expect(more).toBeFocused();
  await expect(more).toHaveAttribute("aria-expanded", "false");

  await more.click();
  await row.getByRole("menuitem", { name: "Switch off" }).click();
  await expect(row.getByText("off", { exact: true })).toBeVisible();
  await more.click();
  await row.getByRole("menuitem", { name: "Switch on" }).click();
  await expect(row.getByText("active", { exact: true })).toBeVisible();
  await more.click();
  await row.getByRole("menuitem", { name: "Snooze" }).click();
  const snooze = page.getByRole("dialog", { name: "Snooze zebras" });
  await accessible(page);
  await picture(page, "alert-snooze");
  await phone(page);
  await snooze.getByRole("button", { name: "1 day" }).click();
  await expect(row).toContainText(/snoozed\s*until 20\d\d-/);
  await more.click();
  await row.getByRole("menuitem", { name: "Wake up" }).click();
  await expect(row.getByText("active", { exact: true })).toBeVisible();
  await row.getByRole("button", { name: "Change zebras" }).click();
  const change = page.getByRole("dialog", { name: "Change zebras" });
  await change.getByLabel("Fires when it finds").selectOption("no_results");
  await change.getByRole("button", { name: "Save" }).click();
  await expect(row).toContainText("picture-book-search, asked for “striped animal”, finds nothing");

  await page.getByRole("button", { name: "Create alert" }).first().click();
  await form.getByLabel("Name", { exact: true }).fill("stale");
  await form.getByLabel("Looks at").selectOption("system");
  await form.getByLabel("Fires when", { exact: true }).selectOption("collection_stale");
  await form.getByLabel("For so many minutes").fill("60");
  // A webhook of the organization stands for an address.
  await expect(form.getByLabel("Address")).toBeVisible();
  await form.getByLabel("Webhook", { exact: true }).selectOption({ label: "desk" });
  await expect(form.getByLabel("Address")).toHaveCount(0);
  await form.getByRole("button", { name: "Create", exact: true }).click();
  const stale = page.getByRole("row", { name: /^stale/ });
  await expect(stale).toContainText("a collection got nothing new for 60 minutes");
  await expect(stale).toContainText("webhook desk");
  await stale.getByRole("button", { name: "Change stale" }).click();
  const again = page.getByRole("dialog", { name: "Change stale" });
  await expect(again.getByLabel("Address")).toHaveCount(0);
  await again.getByRole("button", { name: "Save" }).click();
  await expect(again).toBeHidden();
  await accessible(page);
  await steady(page);
  await picture(page, "alerts");
  await phone(page);
  for (const name of ["zebras", "stale"]) {
    const menu = page.getByRole("button", { name: `More for ${name}` });
    await menu.click();
    await page.getByRole("menuitem", { name: "Remove" }).click();
    await page.getByRole("dialog", { name: `Remove ${name}?` }).getByRole("button", { name: "Remove" }).click();
    await expect(menu).toHaveCount(0);
  }
  await expect(page.getByRole("heading", { name: "No alert here" })).toBeVisible();

  // Who comes to make one finds the form open, with what there is to choose from.
  await page.goto(`${page.url().split("?")[0]}?create=1`);
  await expect(form.getByLabel("Name", { exact: true })).toBeFocused();
  await form.getByLabel("Retriever", { exact: true }).selectOption({ label: "picture-book-search" });
  await expect(form.getByRole("group", { name: "Inputs" }).getByLabel(/^query/)).toBeVisible();
  await form.getByRole("button", { name: "Cancel" }).click();
  await send(page, "DELETE", `/v1/organizations/webhooks/${String(webhook.webhook_id)}`);
  expect(faults).toEqual([]);
});
