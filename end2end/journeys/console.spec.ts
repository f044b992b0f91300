import { expect } from "@playwright/test";
import { accessible, key, noSideways, open, picture, picturesLoaded, signIn, steady, test, url, watch } from "./help.ts";

test("a wrong key is refused in words, the right one signs in, and it can be undone", async ({ page }) => {
  await page.goto(`${url()}/console/`);
  await expect(page.getByRole("heading", { level: 1, name: "Sign in" })).toBeVisible();
  await accessible(page);
  await page.getByLabel("API key").fill("loupe_sk_wrong");
  await page.getByRole("button", { name: "Sign in" }).click();
  await expect(page.getByRole("alert")).toContainText("401");
  await signIn(page);
  await page.reload();
  await expect(page.getByRole("heading", { level: 1, name: "Namespaces" })).toBeVisible();
  await page.getByRole("button", { name: "Sign out" }).click();
  await expect(page.getByRole("heading", { level: 1, name: "Sign in" })).toBeVisible();
});

test("every page of the demo's namespace shows what is there, in both colours and on a phone", async ({ page }) => {
  const faults = watch(page);
  await signIn(page);
  await page.getByRole("main").getByRole("link", { name: "demo", exact: true }).click();
  for (const name of ["Namespaces", "Buckets", "Batches", "Collections", "Retrievers", "Published pages", "Plan and usage", "Users", "API keys", "Audit log", "Tasks"]) {
    await page.setViewportSize({ width: 1280, height: 900 });
    await open(page, name);
    await expect(page.locator(".skeleton")).toHaveCount(0);
    await expect(page.getByRole("main").locator("tbody tr, .meter").first()).toBeVisible();
    await accessible(page);
    await steady(page);
    await page.setViewportSize({ width: 390, height: 800 });
    await noSideways(page);
  }
  expect(faults).toEqual([]);
});

test("a page whose code does not come says so, and is there after a reload", async ({ page }) => {
  await signIn(page);
  await page.route(/split_documents\.wasm/, (route) => route.abort());
  await page.getByRole("main").getByRole("link", { name: "demo", exact: true }).click();
  await expect(page.getByRole("heading", { level: 1, name: "This page could not be fetched" })).toBeVisible();
  await accessible(page);
  // The pages of other pieces are there all the same.
  await open(page, "Users");
  await page.goBack();
  await expect(page.getByRole("heading", { level: 1, name: "This page could not be fetched" })).toBeVisible();
  await page.unroute(/split_documents\.wasm/);
  await page.getByRole("button", { name: "Reload" }).click();
  await expect(page.getByRole("heading", { level: 1, name: "Collections" })).toBeVisible();
});

test("a document opens beside its list and closes with Escape", async ({ page }) => {
  const faults = watch(page);
  await signIn(page);
  await page.getByRole("main").getByRole("link", { name: "demo", exact: true }).click();
  await expect(page.getByRole("heading", { level: 1, name: "Collections" })).toBeVisible();
  await page.getByRole("main").getByRole("row").getByRole("link").first().click();
  const first = page.getByRole("main").locator("tbody tr").first();
  await first.getByRole("button").first().click();
  const dialog = page.getByRole("dialog", { name: "Document" });
  await expect(dialog.getByRole("heading", { name: "Vectors" })).toBeVisible();
  await expect(page).toHaveURL(/document=doc_/);
  await accessible(page);
  await page.keyboard.press("Escape");
  await expect(dialog).toBeHidden();
  expect(faults).toEqual([]);
});

test("the playground runs the demo's retriever and explains it", async ({ page }) => {
  const faults = watch(page);
  await signIn(page);
  await page.getByRole("main").getByRole("link", { name: "demo", exact: true }).click();
  await open(page, "Retrievers");
  await page.getByRole("link", { name: "picture-book-search" }).click();
  await page.getByLabel(/^query/).fill("striped animal of the savanna");
  await page.getByRole("button", { name: "Run" }).click();
  const answer = page.getByRole("tabpanel");
  await expect(answer.getByText(/zebra/i).first()).toBeVisible();
  await picturesLoaded(page);
  await accessible(page);
  for (const [tab, words] of [
    ["Stages", /^In all/],
    ["Explain", /^finds up to/],
    ["Explain", / 1 \(score \d/],
    ["JSON", /"documents"/],
  ] as const) {
    await page.getByRole("tab", { name: tab }).click();
    await expect(answer.getByText(words).first()).toBeVisible();
    await accessible(page);
  }
  // One of the tabs is on the way of the tab key, and arrows lead through them.
  const tab = (name: string) => page.getByRole("tab", { name });
  await expect(page.locator("[role=tab][tabindex='0']")).toHaveText("JSON");
  for (const [key, name] of [["ArrowRight", "Results"], ["ArrowLeft", "JSON"], ["Home", "Results"], ["End", "JSON"], ["ArrowLeft", "Explain"]] as const) {
    await page.keyboard.press(key);
    await expect(tab(name)).toBeFocused();
  }
  await expect(tab("JSON")).toHaveAttribute("aria-selected", "true");
  await page.keyboard.press("Enter");
  await expect(tab("Explain")).toHaveAttribute("aria-selected", "true");
  await expect(answer.getByText(/^finds up to/).first()).toBeVisible();
  expect(faults).toEqual([]);
});

test("from nothing to a published search: bucket, upload, collection, batch, retriever, page", async ({ page }) => {
  const faults = watch(page);
  await signIn(page);

  await page.getByRole("button", { name: "Create namespace" }).first().click();
  await page.getByLabel("Name", { exact: true }).fill("field-notes");
  await accessible(page);
  await page.getByRole("button", { name: "Create", exact: true }).click();
  await expect(page.getByRole("heading", { level: 1, name: "Buckets" })).toBeVisible();

  await page.getByRole("button", { name: "Create bucket" }).first().click();
  await page.getByLabel("Name", { exact: true }).fill("notes");
  await accessible(page);
  await page.getByRole("button", { name: "Create", exact: true }).click();
  await expect(page.getByRole("heading", { level: 1, name: "notes" })).toBeVisible();

  await page.locator("#files").setInputFiles([
    { name: "glacier.txt", mimeType: "text/plain", buffer: Buffer.from("Glaciers are slow rivers of ice that carve valleys.") },
    { name: "bread.txt", mimeType: "text/plain", buffer: Buffer.from("Sourdough rises because wild yeast eats the sugar of flour.") },
  ]);
  await expect(page.getByText("glacier.txt").first()).toBeVisible();
  await expect(page.getByRole("main").locator("tbody tr")).toHaveCount(2);
  await accessible(page);

  await open(page, "Collections");
  await page.getByRole("button", { name: "Create collection" }).first().click();
  await page.getByLabel("Name", { exact: true }).fill("passages");
  await page.locator("summary", { hasText: "More settings" }).click();
  await page.getByLabel("chunk size").fill("500");
  await accessible(page);
  await page.getByRole("button", { name: "Create", exact: true }).click();
  await expect(page.getByRole("heading", { level: 1, name: "passages" })).toBeVisible();

  await open(page, "Buckets");
  await page.getByRole("link", { name: "notes", exact: true }).click();
  await page.getByRole("button", { name: "Process" }).click();
  await expect(page.getByRole("heading", { level: 1, name: /^Batch/ })).toBeVisible();
  await expect(page.getByRole("main").getByText("completed", { exact: true }).first()).toBeVisible({ timeout: 120_000 });
  await expect(page.getByRole("main").locator("dl.stats")).toContainText("Documents written2");
  await accessible(page);

  await open(page, "Retrievers");
  await page.getByRole("main").getByRole("link", { name: "Create retriever" }).first().click();
  await page.getByLabel("Name", { exact: true }).fill("ask-the-notes");
  await expect(page.getByRole("main").locator("li.stage")).toHaveCount(1);
  await accessible(page);
  await page.getByRole("button", { name: "Create", exact: true }).click();
  await expect(page.getByRole("heading", { level: 1, name: "ask-the-notes" })).toBeVisible();
  await page.getByLabel(/^query/).fill("frozen landscape");
  await page.getByRole("button", { name: "Run" }).click();
  await expect(page.getByRole("tabpanel").getByRole("article").first()).toContainText("slow rivers of ice");

  await page.getByRole("main").getByRole("link", { name: "Publish", exact: true }).click();
  await expect(page.getByText("/r/ask-the-notes is free.")).toBeVisible();
  // What the page will be is seen before it is, and follows what is changed.
  const preview = page.frameLocator("iframe[title='Preview of the page']");
  await expect(preview.getByRole("heading", { level: 1 })).toHaveText("ask-the-notes");
  await page.getByLabel("Title", { exact: true }).fill("Ask the notes");
  await expect(preview.getByRole("heading", { level: 1 })).toHaveText("Ask the notes");
  expect((await page.request.get(`${url()}/r/ask-the-notes`)).status()).toBe(404);
  await accessible(page);
  await picture(page, "page-editor");
  await page.getByRole("main").getByRole("button", { name: "Publish" }).click();
  await expect(page.getByRole("link", { name: /\/r\/ask-the-notes$/ })).toBeVisible();
  await expect(page.getByRole("link", { name: "What visitors search for" })).toHaveAttribute("href", /tab=searches&source=page$/);
  await page.getByLabel("Template").selectOption("document-search");
  await page.getByRole("checkbox", { name: "Search engines may list it" }).uncheck();
  await page.getByRole("checkbox", { name: "Ground and text of its own" }).check();
  await page.getByLabel("Colour of cards").fill("#fff4e0");
  await page.getByRole("checkbox", { name: "Filters beside the results" }).check();
  await page.getByRole("group", { name: "Filter by" }).getByRole("checkbox").first().check();
  await page.getByLabel("Searches a minute").fill("900");
  await page.getByRole("button", { name: "Publish the changes" }).click();
  await expect(page.getByText("The page is changed.")).toBeVisible();
  const told = async (): Promise<Record<string, unknown>> => {
    const answer = await page.request.get(`${url()}/v1/public/retrievers/ask-the-notes/config`);
    return ((await answer.json()) as { display_config: Record<string, unknown> }).display_config;
  };
  await expect.poll(async () => JSON.stringify((await told()).theme)).toContain("#fff4e0");
  expect(JSON.stringify((await told()).extensions)).toContain("facets");
  await expect(page.getByLabel("Searches a minute")).toHaveValue("900");
  await expect.poll(async () => (await page.request.get(`${url()}/r/ask-the-notes`)).text()).toContain("noindex");
  await accessible(page);
  await page.goto(`${url()}/r/ask-the-notes?q=${encodeURIComponent("baking with yeast")}`);
  await expect(page.getByRole("article").first()).toContainText("Sourdough");

  await page.goto(`${url()}/console/namespaces`);
  const row = page.getByRole("row", { name: /field-notes/ });
  await row.getByRole("button", { name: "Delete" }).click();
  const question = page.getByRole("dialog", { name: "Delete this namespace?" });
  await question.getByLabel(/^Type field-notes/).fill("notes");
  await question.getByRole("button", { name: "Delete" }).click();
  await expect(question.getByRole("alert")).toContainText("not its name");
  await accessible(page);
  await question.getByLabel(/^Type field-notes/).fill("field-notes");
  await question.getByRole("button", { name: "Delete" }).click();
  await expect(row).toHaveCount(0);
  await expect.poll(async () => (await page.request.get(`${url()}/r/ask-the-notes`)).status()).toBe(404);
  expect(faults).toEqual([]);
});
