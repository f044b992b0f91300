import { readFile } from "node:fs/promises";
import { expect, type Page } from "@playwright/test";
import { accessible, fetched, phone, picture, send, signIn, test, url, watch } from "./help.ts";

const namespaces = async (page: Page): Promise<{ namespace_id: string; namespace_name: string }[]> =>
  (await send(page, "POST", "/v1/namespaces/list", {})).results as { namespace_id: string; namespace_name: string }[];

/** Makes a namespace of the journey's own: others find the demo as it was. */
async function namespace(page: Page, name: string): Promise<string> {
  const made = await send(page, "POST", "/v1/namespaces", { namespace_name: name });
  return String(made.namespace_id);
}

/** Removes what a journey made. */
async function without(page: Page, names: string[]): Promise<void> {
  for (const one of await namespaces(page)) {
    if (names.includes(one.namespace_name)) await send(page, "DELETE", `/v1/namespaces/${one.namespace_id}`);
  }
  await expect.poll(async () => (await namespaces(page)).filter((one) => names.includes(one.namespace_name)).length).toBe(0);
}

/** Opens a page of a namespace by its address. */
async function at(page: Page, id: string, piece: string, heading: string): Promise<void> {
  await page.goto(`${url()}/console/ns/${id}/${piece}`);
  await expect(page.getByRole("heading", { level: 1, name: heading })).toBeVisible();
}

/** Uses a template by the button of its row; what else it asks for is ticked. */
async function use(page: Page, template: string, name: string, ticked?: [group: string, box: string]): Promise<void> {
  await page.getByRole("button", { name: `Use ${template}`, exact: true }).click();
  const form = page.getByRole("dialog", { name: `Use ${template}` });
  if (ticked) await form.getByRole("group", { name: ticked[0], exact: true }).getByRole("checkbox", { name: ticked[1], exact: true }).check();
  await form.getByLabel("Name", { exact: true }).fill(name);
  await form.getByRole("button", { name: "Create", exact: true }).click();
}

test("templates make a bucket, what reads it, what searches that and a whole namespace", async ({ page }) => {
  const faults = watch(page);
  try {
    await signIn(page);
    const id = await namespace(page, "of-templates");
    await at(page, id, "templates", "Templates");
    await expect(page.getByRole("row", { name: /^A search of texts/ })).toContainText("A bucket of texts");
    await accessible(page);
    await picture(page, "templates");
    await phone(page);

    const kinds = page.getByRole("navigation", { name: "Kinds of templates" });
    await kinds.getByRole("link", { name: "Buckets" }).click();
    const rows = page.getByRole("main").locator("tbody tr");
    await expect(page.getByRole("row", { name: /^Texts/ })).toContainText("objects of title, text");
    await page.getByRole("searchbox", { name: "Search templates" }).fill("catalogue");
    await page.keyboard.press("Enter");
    await expect(page).toHaveURL(/q=catalogue/);
    await expect(rows).toHaveCount(1);
    await expect(rows.first()).toContainText("Products");
    await page.getByRole("searchbox", { name: "Search templates" }).fill("");
    await page.keyboard.press("Enter");
    await expect(rows).toHaveCount(4);
    await page.getByLabel("Scope", { exact: true }).selectOption("organization");
    await expect(page.getByRole("heading", { name: "Nothing matches" })).toBeVisible();
    await accessible(page);
    await page.getByLabel("Scope", { exact: true }).selectOption("");
    await expect(rows).toHaveCount(4);

    await page.getByRole("button", { name: "Use Texts", exact: true }).click();
    const form = page.getByRole("dialog", { name: "Use Texts" });
    await expect(form.getByLabel("In the namespace")).toHaveValue(id);
    await form.getByLabel("Name", { exact: true }).fill("articles");
    await accessible(page);
    await picture(page, "template-form");
    await phone(page);
    await form.getByRole("button", { name: "Create", exact: true }).click();
    await expect(page).toHaveURL(new RegExp(`/ns/${id}/buckets/bkt_`));
    await expect(page.getByRole("heading", { level: 1, name: "articles" })).toBeVisible();

    // One by itself, with what it is and what it needs.
    await at(page, id, "templates?tab=collections", "Templates");
    await page.getByRole("link", { name: "Passages of texts" }).click();
    await expect(page.getByRole("heading", { level: 1, name: "Passages of texts" })).toBeVisible();
    await expect(page.getByRole("region", { name: "The configuration as JSON" })).toContainText("text_extractor");
    await expect(page.getByRole("button", { name: "Delete" })).toHaveCount(0);
    await accessible(page);
    await picture(page, "template");
    await phone(page);
    await page.getByRole("button", { name: "Use", exact: true }).click();
    const reading = page.getByRole("dialog", { name: "Use Passages of texts" });
    await reading.getByRole("group", { name: "Reads", exact: true }).getByRole("checkbox", { name: "articles", exact: true }).check();
    await reading.getByLabel("Name", { exact: true }).fill("passages");
    await accessible(page);
    await reading.getByRole("button", { name: "Create", exact: true }).click();
    await expect(page).toHaveURL(new RegExp(`/ns/${id}/collections/col_`));
    await expect(page.getByRole("heading", { level: 1, name: "passages" })).toBeVisible();

    await at(page, id, "templates?tab=retrievers", "Templates");
    await use(page, "Hybrid search of texts", "search of articles", ["Searches", "passages"]);
    await expect(page).toHaveURL(new RegExp(`/ns/${id}/retrievers/ret_`));
    await expect(page.getByRole("heading", { level: 1, name: "search of articles" })).toBeVisible();

    await at(page, id, "templates", "Templates");
    await use(page, "A search of texts", "made-of-a-template");
    await expect(page.getByRole("heading", { level: 1, name: "Buckets" })).toBeVisible();
    await expect(page).not.toHaveURL(new RegExp(id));
    await expect(page.getByRole("row", { name: /^texts/ })).toBeVisible();
    expect(faults).toEqual([]);
  } finally {
    await without(page, ["of-templates", "made-of-a-template"]);
  }
});

test("a bucket is kept as a template, used and removed from the list", async ({ page }) => {
  const faults = watch(page);
  try {
    await signIn(page);
    const id = await namespace(page, "of-own-templates");
    const schema = { properties: { shelf: { type: "string" } } };
    await send(page, "POST", "/v1/buckets", { bucket_name: "shelves", bucket_schema: schema }, id);
    await at(page, id, "templates?tab=buckets", "Templates");
    await page.getByRole("button", { name: "Save as template" }).click();
    const keep = page.getByRole("dialog", { name: "Save a bucket as a template" });
    await keep.getByLabel("Made of").selectOption({ label: "shelves" });
    await keep.getByLabel("Name", { exact: true }).fill("Shelves of ours");
    await keep.getByLabel("Tags").fill("books, order");
    await accessible(page);
    await picture(page, "template-keep");
    await phone(page);
    await keep.getByRole("button", { name: "Save", exact: true }).click();
    await expect(page.getByRole("heading", { level: 1, name: "Shelves of ours" })).toBeVisible();
    await expect(page.getByRole("main")).toContainText("books, order");
    await expect(page.getByRole("button", { name: "Delete" })).toBeVisible();
    await accessible(page);

    await at(page, id, "templates?tab=buckets", "Templates");
    const row = page.getByRole("row", { name: /^Shelves of ours/ });
    await expect(row).toContainText("organization");
    await use(page, "Shelves of ours", "more shelves");
    await expect(page.getByRole("heading", { level: 1, name: "more shelves" })).toBeVisible();

    await at(page, id, "templates?tab=buckets", "Templates");
    await row.getByRole("button", { name: "Remove Shelves of ours" }).click();
    const question = page.getByRole("dialog", { name: "Remove Shelves of ours?" });
    await expect(question).toContainText("What was made of it stays.");
    await question.getByRole("button", { name: "Remove", exact: true }).click();
    await expect(row).toHaveCount(0);
    expect(faults).toEqual([]);
  } finally {
    await without(page, ["of-own-templates"]);
  }
});

const FAULTY = ['version: "1.0"', "namespaces:", "  - name: as-a-file", "buckets:", "  - name: plots", "    colour: red", ""].join("\n");

const MENDED = [
  'version: "1.0"',
  "metadata: {name: films}",
  "parameters:",
  "  - {name: about, type: string}",
  "namespaces:",
  "  - name: as-a-file",
  "buckets:",
  "  - name: plots",
  '    description: "${{ parameters.about }}"',
  "    bucket_schema:",
  "      properties:",
  "        title: {type: string}",
  "        plot: {type: text}",
  "collections:",
  "  - name: film-plots",
  "    source: {type: bucket, bucket_ids: [plots]}",
  "    feature_extractor:",
  "      feature_extractor_name: text_extractor",
  "      version: v1",
  "      input_mappings: {text: plot}",
  "      field_passthrough: [{source_path: title}]",
  "",
].join("\n");

test("a namespace is exported as a file, and a file is checked, compared and applied", async ({ page }) => {
  const faults = watch(page);
  try {
    await signIn(page);
    const id = await namespace(page, "as-a-file");
    const schema = { properties: { title: { type: "string" }, plot: { type: "text" } } };
    await send(page, "POST", "/v1/buckets", { bucket_name: "plots", description: "Films", bucket_schema: schema }, id);
    await at(page, id, "configuration", "Configuration");
    const written = page.getByRole("region", { name: "The namespace as YAML" });
    await expect(written).toContainText("plots");
    await accessible(page);
    await picture(page, "configuration");
    await phone(page);
    const saved = page.waitForEvent("download");
    await page.getByRole("button", { name: "Download as YAML" }).click();
    const file = await saved;
    expect(file.suggestedFilename()).toBe(`${id}.yaml`);
    expect(await readFile(await file.path(), "utf8")).toContain("as-a-file");

    // Nothing is asked about no text; what is there is as it says.
    await page.getByRole("button", { name: "Validate" }).click();
    await expect(page.getByRole("main").getByRole("alert")).toContainText("there is no text yet");
    const field = page.getByLabel("Manifest", { exact: true });
    await page.getByRole("button", { name: "Edit a copy" }).click();
    await expect(field).toHaveValue(/plots/);
    await page.getByRole("button", { name: "What would change" }).click();
    await expect(page.getByText("2 are as the text says.")).toBeVisible();
    // With nothing to do there is nothing to confirm.
    const compared = page.waitForResponse(/\/v1\/manifest\/diff$/);
    await page.getByRole("button", { name: "Apply", exact: true }).click();
    await compared;
    await fetched(page);
    await expect(page.getByRole("dialog")).toHaveCount(0);

    // A fault leads to its line.
    await field.fill(FAULTY);
    await page.getByRole("button", { name: "Validate" }).click();
    await expect(page.getByText("1 error: it cannot be applied.")).toBeVisible();
    await expect(field).toHaveAttribute("aria-invalid", "true");
    await expect(page.locator(".source b")).toHaveText("6");
    await page.getByRole("button", { name: "Line 6" }).click();
    await expect(field).toBeFocused();
    const marked = (area: HTMLTextAreaElement): string => area.value.slice(area.selectionStart, area.selectionEnd);
    expect(await field.evaluate(marked)).toBe("    colour: red");
    await accessible(page);
    await picture(page, "configuration-faults");
    await phone(page);

    // What a manifest asks for is asked for here.
    await page.locator("#files").setInputFiles({ name: "films.yaml", mimeType: "application/yaml", buffer: Buffer.from(MENDED) });
    await expect(field).toHaveValue(MENDED);
    await expect(page.getByText("The text was changed since.")).toBeVisible();
    await page.getByRole("button", { name: "What would change" }).click();
    await page.getByRole("group", { name: "Parameters" }).getByLabel("about", { exact: true }).fill("What happens in films");
    await page.getByRole("button", { name: "What would change" }).click();
    const items = page.getByRole("region", { name: "What would change, one by one" });
    await expect(items.getByRole("row", { name: /^film-plots/ })).toContainText("added");
    await expect(items.getByRole("row", { name: /^plots/ })).toContainText("changed");
    await expect(field).not.toHaveAttribute("aria-invalid", "true");
    await accessible(page);
    await picture(page, "configuration-changes");
    await phone(page);
    await page.getByRole("button", { name: "Lint" }).click();
    await expect(page.getByRole("region", { name: "What could be better" })).toBeVisible();
    await accessible(page);

    await page.getByRole("button", { name: "Apply", exact: true }).click();
    const question = page.getByRole("dialog", { name: "Apply the manifest?" });
    await expect(question).toContainText("film-plots");
    await expect(question).toContainText("differs in description");
    await accessible(page);
    await picture(page, "configuration-apply");
    await phone(page);
    await question.getByRole("button", { name: "Apply", exact: true }).click();
    await expect(page.getByText("Applied: 1 is made, 1 is changed.")).toBeVisible();
    await expect(written).toContainText("film-plots");
    await expect(page.getByRole("region", { name: "What became of each" }).getByRole("row", { name: /^plots/ })).toContainText("updated");
    await accessible(page);
    const bucket = await send(page, "GET", "/v1/buckets/plots", undefined, id);
    expect(bucket.description).toBe("What happens in films");
    expect(faults).toEqual([]);
  } finally {
    await without(page, ["as-a-file"]);
  }
});
