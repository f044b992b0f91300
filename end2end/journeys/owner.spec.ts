import { readFile } from "node:fs/promises";
import { expect, type Page } from "@playwright/test";
import { accessible, inDemo, open, phone, picture, send, signIn, test, url, watch } from "./help.ts";

const palette = (page: Page) => page.getByRole("dialog", { name: "Search or jump to" });

test("one key leads to a page by its words, to a thing by its name or its id, without a mouse", async ({ page }) => {
  const faults = watch(page);
  const namespace = await inDemo(page, "Collections");
  await page.keyboard.press("Control+k");
  const field = palette(page).getByRole("combobox", { name: "Page, name or id" });
  await expect(field).toBeFocused();
  await expect(palette(page).getByRole("option")).toHaveCount(10);
  await accessible(page);
  await picture(page, "palette");
  await phone(page);

  await field.fill("AUDIT lo");
  await expect(palette(page).getByRole("option", { name: /^Audit log/ })).toHaveAttribute("aria-selected", "true");
  await page.keyboard.press("Enter");
  await expect(page.getByRole("heading", { level: 1, name: "Audit log" })).toBeVisible();
  await expect(palette(page)).toBeHidden();

  // What is there is found by its name; arrows mark another place.
  await page.keyboard.press("Control+k");
  await expect(field).toBeFocused();
  await expect(field).toHaveValue("");
  await field.fill("picture");
  const retriever = palette(page).getByRole("option", { name: /^picture-book-search/ });
  await expect(retriever).toBeVisible();
  // Names come a moment after the pages: once none is awaited, every step marks the next place.
  const marked = palette(page).getByRole("option", { selected: true });
  for (let step = 0; step < 10 && (await retriever.getAttribute("aria-selected")) !== "true"; step += 1) {
    const before = (await field.getAttribute("aria-activedescendant")) ?? "";
    await page.keyboard.press("ArrowDown");
    await expect(field).not.toHaveAttribute("aria-activedescendant", before);
    await expect(marked).toHaveCount(1);
  }
  await expect(field).toHaveAttribute("aria-activedescendant", (await retriever.getAttribute("id")) ?? "");
  await page.keyboard.press("Enter");
  await expect(page.getByRole("heading", { level: 1, name: "picture-book-search" })).toBeVisible();

  const buckets = (await send(page, "POST", "/v1/buckets/list", {}, namespace)).results as { bucket_id: string }[];
  const bucket = buckets[0]?.bucket_id ?? "";
  await page.keyboard.press("Control+k");
  await field.fill(bucket);
  await page.keyboard.press("Enter");
  await expect(page).toHaveURL(new RegExp(`/ns/${namespace}/buckets/${bucket}$`));

  // What was closed and is called again at once is there: the browser tells of the closing only after the next key.
  await page.keyboard.press("Control+k");
  await field.fill("Alerts");
  await field.evaluate(async (field) => {
    const press = (key: string, ctrlKey = false) => field.dispatchEvent(new KeyboardEvent("keydown", { key, ctrlKey, bubbles: true, cancelable: true }));
    press("Enter");
    for (let turn = 0; turn < 20; turn += 1) await Promise.resolve();
    window.dispatchEvent(new KeyboardEvent("keydown", { key: "k", ctrlKey: true, cancelable: true }));
  });
  await expect(page.getByRole("heading", { level: 1, name: "Alerts" })).toBeVisible();
  await field.fill("no such thing anywhere");
  await expect(palette(page).getByText("Nothing has that name or id.")).toBeVisible();
  await accessible(page);
  await page.keyboard.press("Escape");
  await expect(palette(page)).toBeHidden();
  expect(faults).toEqual([]);
});

test("the question mark opens the palette where nobody types, unless that is switched off", async ({ page }) => {
  await signIn(page);
  await page.keyboard.press("?");
  await expect(palette(page)).toBeVisible();
  await palette(page).getByRole("checkbox", { name: "The question mark opens it, too" }).uncheck();
  await page.keyboard.press("Escape");
  await page.keyboard.press("?");
  await expect(palette(page)).toBeHidden();
  // It stays off after a reload, and the button is there for those who use no keys.
  await page.reload();
  await expect(page.getByRole("heading", { level: 1, name: "Namespaces" })).toBeVisible();
  await page.keyboard.press("?");
  await expect(palette(page)).toBeHidden();
  await page.getByRole("button", { name: "Search or jump to" }).click();
  await palette(page).getByRole("checkbox", { name: "The question mark opens it, too" }).check();
  await page.keyboard.press("Escape");

  // A dialog that is open is finished first: some show what is never shown again.
  await open(page, "API keys");
  await page.getByRole("button", { name: "Create key" }).first().click();
  await expect(page.getByRole("dialog")).toBeVisible();
  await page.keyboard.press("Control+k");
  await expect(palette(page)).toBeHidden();
});

test("the address of a namespace that is not there says so, instead of showing an empty list", async ({ page }) => {
  await signIn(page);
  await page.goto(`${url()}/console/ns/ns_of_nobody/buckets`);
  await expect(page.getByRole("alert")).toContainText("There is no such namespace");
  await accessible(page);
  await page.getByRole("link", { name: "Choose a namespace" }).click();
  await expect(page.getByRole("heading", { level: 1, name: "Namespaces" })).toBeVisible();
});

test("a refusal for too many calls counts its seconds down", async ({ page }) => {
  await signIn(page);
  const rows = /\/v1\/namespaces\/list\?.*include_total/;
  const refusal = { success: false, status: 429, error: { type: "rate_limited", message: "too many requests" } };
  await page.route(rows, (route) => route.fulfill({ status: 429, headers: { "Retry-After": "8" }, json: refusal }));
  await page.reload();
  await expect(page.getByRole("main").getByRole("alert")).toContainText(/Try again in [1-8] s\./);
  await expect(page.getByRole("main").getByRole("alert")).toContainText("It can be tried again now.");
  await page.unroute(rows);
  await page.getByRole("main").getByRole("button", { name: "Try again" }).click();
  await expect(page.getByRole("main").getByRole("row").nth(1)).toBeVisible();
});

test("an alert of the organization watches chosen namespaces, then all of them", async ({ page }) => {
  const faults = watch(page);
  await signIn(page);
  await open(page, "Organization alerts");
  await expect(page.getByRole("heading", { name: "No alert of the organization" })).toBeVisible();
  await accessible(page);
  await page.getByRole("button", { name: "Create alert" }).first().click();
  const form = page.getByRole("dialog", { name: "Create an alert of the organization" });
  await form.getByLabel("Name", { exact: true }).fill("stuck");
  await form.getByLabel("Fires when", { exact: true }).selectOption("batch_failed");
  await form.getByLabel("Watches", { exact: true }).selectOption("selected");
  await form.getByRole("group", { name: "Namespaces" }).getByRole("checkbox", { name: "demo", exact: true }).check();
  await form.getByLabel("Kind", { exact: true }).selectOption("email");
  await form.getByLabel("To", { exact: true }).fill("desk@example.com");
  await expect(form.getByLabel("Looks at")).toHaveCount(0);
  await accessible(page);
  await picture(page, "organization-alert-form");
  await phone(page);
  await form.getByRole("button", { name: "Create", exact: true }).click();
  const row = page.getByRole("row", { name: /^stuck/ });
  await expect(row).toContainText("a batch failed");
  await expect(row.getByText("demo", { exact: true })).toBeVisible();

  const more = row.getByRole("button", { name: "More for stuck" });
  await more.click();
  await row.getByRole("menuitem", { name: "Switch off" }).click();
  await expect(row.getByText("off", { exact: true })).toBeVisible();
  await more.click();
  await row.getByRole("menuitem", { name: "Switch on" }).click();
  await expect(row.getByText("active", { exact: true })).toBeVisible();
  await row.getByRole("button", { name: "Change stuck" }).click();
  const change = page.getByRole("dialog", { name: "Change stuck" });
  await change.getByLabel("Watches", { exact: true }).selectOption("all");
  await change.getByRole("button", { name: "Save" }).click();
  await expect(row).toContainText("every namespace");
  await accessible(page);
  await picture(page, "organization-alerts");
  await phone(page);
  await more.click();
  await row.getByRole("menuitem", { name: "Remove" }).click();
  await page.getByRole("dialog", { name: "Remove stuck?" }).getByRole("button", { name: "Remove" }).click();
  await expect(page.getByRole("heading", { name: "No alert of the organization" })).toBeVisible();
  expect(faults).toEqual([]);
});

test("a secret is kept under a name, changed without being shown, and removed", async ({ page }) => {
  const faults = watch(page);
  await signIn(page);
  await open(page, "Secrets");
  await page.getByRole("button", { name: "Create secret" }).first().click();
  const form = page.getByRole("dialog", { name: "Create a secret" });
  await form.getByLabel("Name", { exact: true }).fill("shelf");
  await form.getByLabel("Value", { exact: true }).fill("first-value");
  await accessible(page);
  await form.getByRole("button", { name: "Create", exact: true }).click();
  const row = page.getByRole("row", { name: /^shelf/ });
  await expect(row).toBeVisible();
  await accessible(page);
  await phone(page);
  await row.getByRole("button", { name: "Change shelf" }).click();
  const change = page.getByRole("dialog", { name: "Another value for shelf" });
  await expect(change.getByLabel("Value", { exact: true })).toHaveValue("");
  await expect(change.getByLabel("Name", { exact: true })).toHaveCount(0);
  await change.getByLabel("Value", { exact: true }).fill("second-value");
  await change.getByRole("button", { name: "Save" }).click();
  await expect(change).toBeHidden();
  await expect(page.locator("body")).not.toContainText("second-value");
  await row.getByRole("button", { name: "Remove shelf" }).click();
  await page.getByRole("dialog", { name: "Remove shelf?" }).getByRole("button", { name: "Remove" }).click();
  await expect(row).toHaveCount(0);
  expect(faults).toEqual([]);
});

test("a plan is chosen, and spending is shown by day, limited and estimated", async ({ page }) => {
  const faults = watch(page);
  await signIn(page);
  await open(page, "Plan and usage");
  await page.getByRole("button", { name: "Choose a plan" }).click();
  const plans = page.getByRole("dialog", { name: "Choose a plan" });
  await expect(plans.getByRole("radio", { name: /^Enterprise, as now/ })).toBeChecked();
  await expect(plans.getByRole("radio", { name: /^Build.*a month.*Up to/ })).not.toBeChecked();
  await accessible(page);
  await picture(page, "plans");
  await phone(page);
  await plans.getByRole("button", { name: "Choose", exact: true }).click();
  await expect(page.getByText("The plan holds from now on")).toBeVisible();
  await expect(plans).toBeHidden();

  await open(page, "Spending");
  await expect(page.getByRole("img", { name: "Spending by day" })).toBeVisible();
  const parts = page.getByRole("region", { name: "What it went to", exact: true });
  await expect(parts.getByRole("row", { name: /^Work ingestion/ })).toBeVisible();
  await accessible(page);
  await picture(page, "spending");
  await phone(page);
  const saved = page.waitForEvent("download");
  await page.getByRole("button", { name: "Download as CSV" }).click();
  const file = await saved;
  expect(file.suggestedFilename()).toMatch(/^spending-\d{4}-\d{2}\.csv$/);
  expect(await readFile(await file.path(), "utf8")).toMatch(/^of,name,credits\nWork,"ingestion",\d+\n/);

  await page.getByRole("button", { name: "Change the limits" }).click();
  const limits = page.getByRole("dialog", { name: "Limits of spending" });
  await limits.getByLabel("Budget a month, in dollars").fill("5000");
  await limits.getByLabel("Tell at so many per cent of it").fill("50, 90");
  await accessible(page);
  await limits.getByRole("button", { name: "Save" }).click();
  await expect(page.getByText("You are told at 50 %, 90 % of the budget.")).toBeVisible();
  await expect(page.getByRole("progressbar", { name: /^Budget: .* of \$5000\.00/ })).toBeVisible();
  // An amount that is taken away is gone.
  await page.getByRole("button", { name: "Change the limits" }).click();
  await limits.getByLabel("Budget a month, in dollars").fill("");
  await limits.getByLabel("Tell at so many per cent of it").fill("80, 95");
  await limits.getByRole("button", { name: "Save" }).click();
  await expect(page.getByText("There is no budget.")).toBeVisible();

  await page.getByRole("button", { name: "Estimate a workload" }).click();
  const estimate = page.getByRole("dialog", { name: "What would it cost?" });
  await estimate.getByLabel("Files").selectOption({ label: "Films" });
  await estimate.getByLabel("Minutes in all").fill("600");
  await accessible(page);
  await estimate.getByRole("button", { name: "Estimate", exact: true }).click();
  await expect(page.getByText(/^600 × minute: \$6\.00\./)).toBeVisible();
  expect(faults).toEqual([]);
});

const namespaces = async (page: Page): Promise<{ namespace_id: string; namespace_name: string }[]> =>
  (await send(page, "POST", "/v1/namespaces/list", {})).results as { namespace_id: string; namespace_name: string }[];

/** Removes what a journey made, so that the next one finds what it expects. */
async function without(page: Page, names: string[]): Promise<void> {
  for (const one of await namespaces(page)) {
    if (names.includes(one.namespace_name)) await send(page, "DELETE", `/v1/namespaces/${one.namespace_id}`);
  }
  await expect.poll(async () => (await namespaces(page)).filter((one) => names.includes(one.namespace_name)).length).toBe(0);
}

test("a snapshot is taken, checked and restored beside what is there, and a namespace is copied", async ({ page }) => {
  const faults = watch(page);
  try {
    const namespace = await inDemo(page, "Snapshots");
    await expect(page.getByRole("heading", { name: "No snapshot yet" })).toBeVisible();
    await accessible(page);
    await page.getByRole("button", { name: "Take a snapshot" }).first().click();
    const take = page.getByRole("dialog", { name: "Take a snapshot" });
    await take.getByRole("checkbox", { name: /^With the files/ }).uncheck();
    await accessible(page);
    await take.getByRole("button", { name: "Take it" }).click();
    const row = page.getByRole("main").locator("tbody tr").first();
    await expect(row).toContainText("completed", { timeout: 120_000 });
    await expect(row).toContainText(/[\d,]+ points/);
    await row.getByRole("button", { name: /^Check/ }).click();
    await expect(page.getByText("Its files are there, and are what they were")).toBeVisible();
    await accessible(page);
    await picture(page, "snapshots");
    await phone(page);

    // Turning back asks for the name, and does nothing without it.
    await row.getByRole("button", { name: /^Turn back/ }).click();
    const back = page.getByRole("dialog", { name: "Turn the namespace back?" });
    await back.getByLabel("Type demo to confirm").fill("else");
    await back.getByRole("button", { name: "Turn back" }).click();
    await expect(back.getByRole("alert")).toContainText("this is not its name");
    await accessible(page);
    await page.keyboard.press("Escape");

    await row.getByRole("button", { name: /^Restore/ }).click();
    const restore = page.getByRole("dialog", { name: "Restore into a new namespace" });
    await restore.getByLabel("Name of the new namespace").fill("demo-of-yesterday");
    await restore.getByRole("button", { name: "Restore" }).click();
    // Loading the page again would take back what is still on its way.
    await expect(restore).toBeHidden();
    await expect(async () => {
      await page.reload();
      await expect(row).toContainText("complete", { timeout: 10_000 });
      await expect(row.getByRole("link", { name: /^ns_/ })).toBeVisible({ timeout: 5_000 });
    }).toPass({ timeout: 180_000 });

    await page.getByRole("button", { name: "Copy the namespace as it is" }).click();
    const copy = page.getByRole("dialog", { name: "Copy the namespace" });
    await copy.getByLabel("Name of the copy").fill("demo-next");
    await expect(copy.getByRole("checkbox", { name: "Taxonomies" })).toBeChecked();
    await accessible(page);
    await copy.getByRole("button", { name: "Copy", exact: true }).click();
    await expect(page.getByRole("heading", { level: 1, name: "Collections" })).toBeVisible();
    await expect(page).not.toHaveURL(new RegExp(namespace));
    await open(page, "Namespaces");
    const made = page.getByRole("row", { name: /^demo-next/ });
    await expect(made).toBeVisible();
    await expect(made.getByText("cloning")).toHaveCount(0, { timeout: 180_000 });
    expect(faults).toEqual([]);
  } finally {
    await without(page, ["demo-of-yesterday", "demo-next"]);
  }
});
