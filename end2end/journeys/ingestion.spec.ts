import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, type Page } from "@playwright/test";
import { accessible, inDemo, phone, picture, picturesLoaded, send, test, url, watch } from "./help.ts";

/** What only says that it is a picture. */
const BROKEN = Buffer.from("%PDF-1.4 not a picture").toString("base64");

/** A red square. */
const square = (page: Page): Promise<string> =>
  page.evaluate(() => {
    const canvas = document.createElement("canvas");
    canvas.width = canvas.height = 64;
    const brush = canvas.getContext("2d") as CanvasRenderingContext2D;
    brush.fillStyle = "red";
    brush.fillRect(0, 0, 64, 64);
    return canvas.toDataURL("image/png").split(",")[1] ?? "";
  });

test("a folder is uploaded, a file of it fails, is sent again, and another is left out", async ({ page }) => {
  const faults = watch(page);
  const folder = mkdtempSync(join(tmpdir(), "loupe-folder-"));
  const letters = join(folder, "letters");
  mkdirSync(join(letters, "june"), { recursive: true });
  writeFileSync(join(letters, "may.txt"), "A letter of May.");
  writeFileSync(join(letters, "june", "sea.txt"), "A letter of June, from the sea.");
  writeFileSync(join(letters, "june", "storm.txt"), "A letter of a storm.");
  writeFileSync(join(letters, ".hidden"), "Nobody's letter.");
  try {
    const namespace = await inDemo(page, "Buckets");
    const bucket = await send(page, "POST", "/v1/buckets", { bucket_name: "drawer", bucket_schema: { properties: { content: { type: "text" } } } }, namespace);
    let full = true;
    await page.route(/\/v1\/buckets\/[^/]+\/uploads$/, async (route) => {
      const meant = route.request().postData()?.includes("storm.txt");
      if (!full || !meant) return route.continue();
      const error = { type: "InternalServerError", message: "the disk is full" };
      return route.fulfill({ status: 500, json: { success: false, status: 500, error } });
    });
    await page.goto(`${url()}/console/ns/${namespace}/buckets/${String(bucket.bucket_id)}`);
    await expect(page.getByRole("heading", { level: 1, name: "drawer" })).toBeVisible();
    await expect(page.getByText("Choose a folder")).toBeVisible();
    await page.locator("#folder").setInputFiles(letters);

    const main = page.getByRole("main");
    const files = main.getByRole("list", { name: "Files on their way" });
    const storm = files.getByRole("listitem").filter({ hasText: "letters/june/storm.txt" });
    await expect(storm).toContainText("the disk is full");
    await expect(main.getByText(/^2 of 3 files, .*, 1 failed$/)).toBeVisible();
    await expect(files.getByText("uploaded", { exact: true })).toHaveCount(2);
    await expect(files).not.toContainText(".hidden");
    await expect(main.locator("tbody tr")).toHaveCount(2);
    await accessible(page);
    await picture(page, "upload-failed");
    await phone(page);

    // It is still there after a look at another part.
    const parts = page.getByRole("navigation", { name: "Parts of the bucket" });
    await parts.getByRole("link", { name: "Lineage" }).click();
    await expect(main.getByRole("heading", { name: "Nothing before it and nothing after it" })).toBeVisible();
    await expect(storm).toHaveCount(0);
    await parts.getByRole("link", { name: "Objects" }).click();
    await expect(storm).toContainText("the disk is full");

    full = false;
    await storm.getByRole("button", { name: "Try again" }).click();
    await expect(files).toBeFocused();
    await expect(main.getByText(/^3 of 3 files, [^,]*$/)).toBeVisible();
    await expect(main.locator("tbody tr")).toHaveCount(3);

    // What fails can be left out as well.
    full = true;
    await page.locator("#files").setInputFiles(join(letters, "june", "storm.txt"));
    await expect(main.getByText(/^3 of 4 files, .*, 1 failed$/)).toBeVisible();
    await files.getByRole("button", { name: "Leave out storm.txt" }).click();
    await expect(files).toBeFocused();
    await expect(main.getByText(/^3 of 3 files, [^,]*$/)).toBeVisible();
    await expect(files.getByRole("alert")).toHaveCount(0);
    await send(page, "DELETE", `/v1/buckets/${String(bucket.bucket_id)}`, undefined, namespace);
    // The browser tells of the two refusals that were wanted.
    expect(faults.filter((fault) => !fault.includes("status of 500"))).toEqual([]);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test("what a batch could not read is found, tried again, and seen object by object", async ({ page }) => {
  const faults = watch(page);
  const namespace = await inDemo(page, "Buckets");
  const bucket = String((await send(page, "POST", "/v1/buckets", { bucket_name: "gallery", bucket_schema: { properties: { image: { type: "image" } } } }, namespace)).bucket_id);
  const collection = await send(page, "POST", "/v1/collections", {
    collection_name: "gallery-pictures", source: { type: "bucket", bucket_ids: [bucket] },
    feature_extractor: { feature_extractor_name: "image_extractor", version: "v1" },
  }, namespace);
  const object = async (data: string): Promise<string> => {
    const blobs = [{ property: "image", type: "image", data }];
    return String((await send(page, "POST", `/v1/buckets/${bucket}/objects`, { blobs }, namespace)).object_id);
  };
  const [good, bad] = [await object(await square(page)), await object(BROKEN)];
  const main = page.getByRole("main");
  const link = (id: string) => main.locator(`a[href$="/objects/${id}"]`);

  await page.goto(`${url()}/console/ns/${namespace}/buckets/${bucket}`);
  await expect(link(good)).toBeVisible();
  await main.getByRole("button", { name: "Process" }).click();
  await expect(page.getByRole("heading", { level: 1, name: /^Batch/ })).toBeVisible();
  const ended = main.getByText("completed with errors", { exact: true }).first();
  await expect(ended).toBeVisible({ timeout: 120_000 });
  const batch = /\/batches\/[^/]+\/([^/?]+)/.exec(page.url())?.[1] ?? "";
  /** Waits until the batch has ended once more, and looks at it. */
  const again = async (): Promise<void> => {
    const status = async () => (await send(page, "GET", `/v1/buckets/${bucket}/batches/${batch}`, undefined, namespace)).status;
    await expect.poll(status, { timeout: 120_000 }).toBe("COMPLETED_WITH_ERRORS");
    await page.reload();
    await expect(ended).toBeVisible();
  };
  await expect(link(bad)).toBeVisible();
  await accessible(page);
  await picture(page, "batch-failed");
  await phone(page);

  await main.getByRole("button", { name: "Diagnose" }).click();
  const diagnosis = page.getByRole("dialog", { name: "Diagnosis" });
  await expect(diagnosis).toContainText("1 object failed");
  await expect(diagnosis.getByRole("region", { name: "Objects by tier" }).locator("tbody tr")).toHaveCount(1);
  await accessible(page);
  await page.keyboard.press("Escape");
  await main.getByRole("button", { name: "Retry what failed" }).click();
  const retry = page.getByRole("dialog", { name: "Retry what failed?" });
  await retry.getByLabel("Objects").selectOption({ label: "All that failed" });
  await accessible(page);
  await retry.getByRole("button", { name: "Retry", exact: true }).click();
  await expect(page.getByText("What failed is tried again")).toBeVisible();
  await again();
  await main.getByRole("button", { name: "Run again" }).click();
  const rerun = page.getByRole("dialog", { name: "Run this batch again?" });
  await rerun.getByLabel("What").selectOption({ label: "All that came as far as tier 1" });
  await rerun.getByRole("button", { name: "Run again" }).click();
  await expect(page.getByText("The batch runs again")).toBeVisible();
  await again();
  await main.getByRole("button", { name: "Run again" }).click();
  await rerun.getByLabel("What").selectOption({ label: "Everything, also what is unchanged" });
  await rerun.getByRole("button", { name: "Run again" }).click();
  await expect(page.getByText("All of the batch is made again")).toBeVisible();
  await again();
  const forced = await send(page, "GET", `/v1/buckets/${bucket}/batches/${batch}`, undefined, namespace);
  expect(forced.effective_dedup_strategy).toBe("force");

  // The one that failed has nothing to show but itself, and is deleted.
  await link(bad).click();
  await expect(main.getByRole("heading", { name: "Nothing was made of it yet" })).toBeVisible();
  await accessible(page);
  await main.getByRole("button", { name: "Delete", exact: true }).click();
  const question = page.getByRole("dialog", { name: "Delete this object?" });
  await question.getByLabel(/^Type /).fill((await main.getByRole("heading", { level: 1 }).textContent()) ?? "");
  await question.getByRole("button", { name: "Delete", exact: true }).click();
  await expect(page.getByRole("heading", { level: 1, name: "gallery" })).toBeVisible();
  await expect(link(good)).toBeVisible();
  await expect(link(bad)).toHaveCount(0);

  await link(good).click();
  const made = main.getByRole("link", { name: "gallery-pictures" });
  await expect(made).toBeVisible();
  await expect(main.locator('a[href*="/batches/"]')).toHaveCount(1);
  await picturesLoaded(page);
  await accessible(page);
  await picture(page, "object");
  await phone(page);
  await made.click();
  await expect(page.getByRole("heading", { level: 1, name: "gallery-pictures" })).toBeVisible();
  await expect(main.locator("tbody tr")).toHaveCount(1);
  await main.getByRole("button", { name: "Reconcile" }).click();
  await expect(page.getByRole("dialog", { name: "Objects and documents" })).toContainText("Every object was made into documents.");
  await accessible(page);
  await page.keyboard.press("Escape");

  // Collections and buckets lead to one another.
  const parts = page.getByRole("navigation", { name: "Parts of the collection" });
  await parts.getByRole("link", { name: "Schema" }).click();
  await expect(main.getByRole("region", { name: "Vector indexes" }).locator("tbody tr").first()).toBeVisible();
  await accessible(page);
  await phone(page);
  await parts.getByRole("link", { name: "Lineage" }).click();
  const drawn = main.getByRole("region", { name: "Lineage" }).getByRole("listitem");
  await expect(drawn.getByText("gallery-pictures", { exact: true })).toBeVisible();
  await accessible(page);
  await picture(page, "lineage");
  await phone(page);
  await main.getByRole("link", { name: "gallery", exact: true }).click();
  await page.getByRole("navigation", { name: "Parts of the bucket" }).getByRole("link", { name: "Lineage" }).click();
  await expect(main.getByRole("link", { name: "gallery-pictures" })).toBeVisible();
  await accessible(page);

  await send(page, "DELETE", `/v1/collections/${String(collection.collection_id)}`, undefined, namespace);
  await send(page, "DELETE", `/v1/buckets/${bucket}`, undefined, namespace);
  expect(faults).toEqual([]);
});

test("a collection reads another, and their documents lead to one another, are changed and deleted", async ({ page }) => {
  const faults = watch(page);
  await inDemo(page, "Buckets");
  const namespace = String((await send(page, "POST", "/v1/namespaces", { namespace_name: "leaflets" })).namespace_id);
  const schema = { properties: { note: { type: "string" }, topic: { type: "string" } } };
  const bucket = String((await send(page, "POST", "/v1/buckets", { bucket_name: "notes", bucket_schema: schema }, namespace)).bucket_id);
  const pages = String((await send(page, "POST", "/v1/collections", {
    collection_name: "pages", source: { type: "bucket", bucket_ids: [bucket] },
    feature_extractor: { feature_extractor_name: "text_extractor", version: "v1", input_mappings: { text: "note" } },
  }, namespace)).collection_id);
  for (const note of ["Glaciers carve valleys.", "Rivers of ice are slow."]) {
    await send(page, "POST", `/v1/buckets/${bucket}/objects`, { note, topic: "ice" }, namespace);
  }
  const main = page.getByRole("main");

  await page.goto(`${url()}/console/ns/${namespace}/collections`);
  await main.getByRole("button", { name: "Create collection" }).click();
  const form = page.getByRole("dialog", { name: "Create a collection" });
  await form.getByLabel("Name", { exact: true }).fill("pieces");
  await expect(form.getByRole("checkbox", { name: "notes", exact: true })).toBeChecked();
  await form.getByLabel("Made from").selectOption({ label: "Collections" });
  await expect(form.getByRole("checkbox", { name: "pages", exact: true })).toBeChecked();
  await form.getByLabel("Extractor", { exact: true }).selectOption("text_extractor");
  await form.getByLabel("The text comes from").selectOption("text");
  await accessible(page);
  await form.getByRole("button", { name: "Create", exact: true }).click();
  await expect(page.getByRole("heading", { level: 1, name: "pieces" })).toBeVisible();

  const batches = `/v1/buckets/${bucket}/batches`;
  const batch = String((await send(page, "POST", batches, { auto_submit: true }, namespace)).batch_id);
  const status = async () => (await send(page, "GET", `${batches}/${batch}`, undefined, namespace)).status;
  await expect.poll(status, { timeout: 120_000 }).toBe("COMPLETED");
  await page.reload();
  await expect(main.locator("tbody tr")).toHaveCount(2);
  await main.locator("tbody tr").first().getByRole("button", { name: /^Open/ }).click();
  const panel = page.getByRole("dialog", { name: "Document", exact: true });
  const part = (name: string) => panel.locator("section").filter({ has: page.getByRole("heading", { name, exact: true }) });
  await panel.getByRole("button", { name: /^Find similar/ }).first().click();
  await expect(part("Similar documents").getByRole("link")).toHaveCount(1);
  await accessible(page);
  await picture(page, "document");
  await part("Made of documents").getByRole("link").click();
  await expect(page).toHaveURL(new RegExp(`/collections/${pages}\\?document=`));
  await expect(part("Documents made of it").getByRole("link")).toHaveCount(1);

  await panel.getByRole("button", { name: "Change fields" }).click();
  const change = page.getByRole("dialog", { name: "Change the fields" });
  await change.getByLabel("text", { exact: true }).fill("Glaciers are rivers, too.");
  await accessible(page);
  await change.getByRole("button", { name: "Save" }).click();
  await expect(change).toBeHidden();
  await expect(part("Fields")).toContainText("Glaciers are rivers, too.");
  await phone(page, panel);

  await panel.getByRole("button", { name: "Delete", exact: true }).click();
  const question = page.getByRole("dialog", { name: "Delete this document?" });
  await question.getByLabel(/^Type /).fill((await question.locator("label strong").textContent()) ?? "");
  await question.getByRole("button", { name: "Delete", exact: true }).click();
  await expect(panel).toBeHidden();
  await expect(page.getByText("The document is being deleted")).toBeVisible();

  // Columns are chosen, and stay in the address.
  await expect(main.locator("tbody tr")).toHaveCount(1);
  await main.getByRole("button", { name: "Columns" }).click();
  const columns = page.getByRole("dialog", { name: "Columns" });
  await columns.getByRole("checkbox", { name: "Vectors", exact: true }).uncheck();
  await columns.getByRole("checkbox", { name: "text", exact: true }).check();
  await picture(page, "document-columns");
  await accessible(page);
  await page.keyboard.press("Escape");
  await page.reload();
  await expect(main.getByRole("columnheader", { name: "text", exact: true })).toBeVisible();
  await expect(main.getByRole("columnheader", { name: "Vectors", exact: true })).toHaveCount(0);

  // Documents are picked, and deleted together.
  await expect(main.getByText("None selected")).toBeVisible();
  await main.getByRole("checkbox", { name: /^Select / }).check();
  await expect(main.getByText("1 document selected")).toBeVisible();
  await expect(main.getByRole("checkbox", { name: "All of this page" })).toBeChecked();
  await picture(page, "documents-picked");
  await phone(page);
  await main.getByRole("button", { name: "Delete selected" }).click();
  const together = page.getByRole("dialog", { name: "Delete 1 document?" });
  await accessible(page);
  await together.getByRole("button", { name: "Delete", exact: true }).click();
  await expect(page.getByText("Deleted 1 document")).toBeVisible();
  await expect(main.getByRole("heading", { name: "No document yet" })).toBeVisible();
  await send(page, "POST", `/v1/buckets/${bucket}/objects`, { note: "Snow becomes ice.", topic: "ice" }, namespace);
  await main.getByRole("button", { name: "Reconcile" }).click();
  const missing = page.getByRole("dialog", { name: "Objects and documents" });
  await expect(missing.getByRole("region", { name: "Objects that no document was made of" }).locator("tbody tr")).toHaveCount(1);
  await picture(page, "reconciliation");
  await accessible(page);
  await page.keyboard.press("Escape");
  await main.getByRole("button", { name: "Process", exact: true }).click();
  const anew = page.getByRole("dialog", { name: "Process all that it is made from?" });
  await anew.getByLabel("What is unchanged").selectOption({ label: "is made again" });
  await accessible(page);
  await anew.getByRole("button", { name: "Process", exact: true }).click();
  await expect(page.getByText("3 objects are queued")).toBeVisible();
  await expect(page.getByRole("heading", { level: 1, name: "Batches" })).toBeVisible();

  // A bucket gets a key, and is split into batches of one object each.
  await page.goto(`${url()}/console/ns/${namespace}/buckets/${bucket}`);
  await main.getByRole("button", { name: "Settings" }).click();
  const settings = page.getByRole("dialog", { name: "Settings of the bucket" });
  await settings.getByRole("checkbox", { name: "note (string)" }).check();
  await settings.getByLabel("Takes").selectOption("upsert");
  await picture(page, "bucket-settings");
  await accessible(page);
  await settings.getByRole("button", { name: "Save" }).click();
  await expect(page.getByText("The bucket is changed")).toBeVisible();
  await picture(page, "bucket-keyed");
  const keyed = await send(page, "GET", `/v1/buckets/${bucket}`, undefined, namespace);
  expect(keyed.unique_key).toEqual({ fields: ["note"], default_policy: "upsert" });
  await main.getByRole("button", { name: "Split into batches" }).click();
  const split = page.getByRole("dialog", { name: "Split the bucket into batches" });
  await split.getByLabel("Objects in a batch").fill("1");
  await accessible(page);
  await split.getByRole("button", { name: "Submit" }).click();
  await expect(page.getByText("3 objects in 3 batches")).toBeVisible();
  await expect(page.getByRole("heading", { level: 1, name: "Batches" })).toBeVisible();
  expect(faults).toEqual([]);
  await send(page, "DELETE", `/v1/namespaces/${namespace}?force=true`);
});

test("a batch that is not submitted leads to its draft, and one of documents is read without a bucket", async ({ page }) => {
  const faults = watch(page);
  await inDemo(page, "Buckets");
  const namespace = String((await send(page, "POST", "/v1/namespaces", { namespace_name: "drafts" })).namespace_id);
  const schema = { properties: { note: { type: "string" } } };
  const bucket = String((await send(page, "POST", "/v1/buckets", { bucket_name: "notes", bucket_schema: schema }, namespace)).bucket_id);
  const main = page.getByRole("main");

  // Of a bucket with nothing in it nothing is made.
  await page.goto(`${url()}/console/ns/${namespace}/buckets/${bucket}`);
  await main.getByRole("button", { name: "Process" }).click();
  await expect(main.getByText("the bucket holds no objects yet, so nothing was started")).toBeVisible();
  await accessible(page);
  expect((await send(page, "POST", `/v1/buckets/${bucket}/batches/list`, {}, namespace)).results).toEqual([]);
  await send(page, "POST", `/v1/buckets/${bucket}/objects`, { note: "Snow becomes ice." }, namespace);

  // No collection is over the bucket: the batch is made, and its submission refused.
  await page.goto(`${url()}/console/ns/${namespace}/buckets/${bucket}`);
  await main.getByRole("button", { name: "Process" }).click();
  await expect(main.getByText(/^The batch was made and waits as a draft/)).toBeVisible();
  await accessible(page);
  await picture(page, "bucket-draft");
  await phone(page);
  await main.getByRole("link", { name: "Open the batch" }).click();
  await expect(page.getByRole("heading", { level: 1, name: /^Batch/ })).toBeVisible();
  await expect(main.getByRole("button", { name: "Submit" })).toBeVisible();

  // Documents that nobody made of objects: the batch of them has no bucket.
  const collection = async (collection_name: string, source: object, required: boolean): Promise<string> => {
    const feature_extractor = {
      feature_extractor_name: "text_extractor", version: "v1",
      field_passthrough: [{ source_path: "topic", required }],
    };
    return String((await send(page, "POST", "/v1/collections", { collection_name, source, feature_extractor }, namespace)).collection_id);
  };
  const letters = await collection("letters", { type: "direct_upsert" }, false);
  const strict = await collection("strict", { type: "collection", collection_ids: [letters] }, true);
  const write = async (body: object): Promise<string> =>
    String((await send(page, "POST", `/v1/collections/${letters}/documents`, body, namespace)).document_id);
  await write({ text: "Dear sir", topic: "letter" });
  const bad = await write({ text: "Hello there" });
  const batch = String((await send(page, "POST", `/v1/collections/${strict}/trigger`, {}, namespace)).batch_id);
  const status = async () => (await send(page, "GET", `/v1/batches/${batch}`, undefined, namespace)).status;
  await expect.poll(status, { timeout: 120_000 }).toBe("COMPLETED_WITH_ERRORS");

  await page.getByRole("navigation", { name: "Console" }).getByRole("link", { name: "Batches", exact: true }).click();
  await main.getByRole("link", { name: batch }).click();
  await expect(page).toHaveURL(new RegExp(`/batches/${batch}$`));
  await expect(page.getByRole("heading", { level: 1, name: `Batch ${batch}` })).toBeVisible();
  await expect(main.getByText("completed with errors", { exact: true }).first()).toBeVisible();
  await expect(main.getByRole("region", { name: "Failed objects" }).getByRole("row", { name: new RegExp(bad) })).toBeVisible();
  // What has no way to it is not offered.
  await expect(main.getByRole("button")).toHaveCount(0);
  await accessible(page);
  await picture(page, "batch-of-documents");
  await phone(page);
  // The browser tells of the refusal that was wanted.
  expect(faults.filter((fault) => !fault.includes("status of 400"))).toEqual([]);
  await send(page, "DELETE", `/v1/namespaces/${namespace}?force=true`);
});
