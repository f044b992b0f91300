import { expect } from "@playwright/test";
import { call, type Owner, serve, visit, origin } from "../apps.ts";
import { accessible, inDemo, key, log, open, phone, picture, send, signIn, steady, test, url, watch } from "./help.ts";

test("documents are gathered, drawn, named and made into a taxonomy that finds where others belong", async ({ page }) => {
  const faults = watch(page);
  const namespace = await inDemo(page, "Clusters");
  await expect(page.getByRole("heading", { name: "No cluster here" })).toBeVisible();
  await accessible(page);
  await page.getByRole("button", { name: "Create cluster" }).first().click();
  const form = page.getByRole("dialog", { name: "Create a cluster" });
  await form.getByLabel("Name", { exact: true }).fill("kinds of pictures");
  await form.getByLabel("Gathers documents").selectOption("attribute");
  await expect(form.getByLabel("Alike by")).toHaveCount(0);
  await form.getByLabel("Gathers documents").selectOption("vector");
  await form.getByRole("group", { name: "Of", exact: true }).getByRole("checkbox").first().check();
  await form.getByLabel("Alike by").selectOption({ index: 1 });
  await form.getByLabel("Method").selectOption("kmeans");
  await form.getByLabel("Groups", { exact: true }).fill("4");
  await accessible(page);
  await picture(page, "cluster-form");
  await phone(page);
  await form.getByRole("button", { name: "Create", exact: true }).click();
  await expect(page.getByRole("heading", { level: 1, name: "kinds of pictures" })).toBeVisible();
  await expect(page.getByRole("heading", { name: "Nothing is gathered yet" })).toBeVisible();
  await accessible(page);

  await page.getByRole("button", { name: "Gather" }).click();
  const groups = page.getByRole("region", { name: "Groups", exact: true }).locator("tbody tr");
  await expect(groups).toHaveCount(4, { timeout: 120_000 });
  const drawn = page.getByRole("img", { name: /documents in 4 groups/ });
  await expect(drawn).toBeVisible();
  await expect.poll(() => drawn.locator("circle").count()).toBeGreaterThan(10);
  await accessible(page);
  await steady(page);
  await picture(page, "cluster");
  await phone(page);

  // One group before the others, under a name of one's own.
  await groups.first().getByRole("button", { name: /^Show/ }).click();
  await expect(page).toHaveURL(/group=cl_0/);
  await expect(drawn.locator(".dim")).not.toHaveCount(0);
  await page.getByRole("button", { name: "Show all groups" }).click();
  await expect(drawn.locator(".dim")).toHaveCount(0);
  await groups.first().getByRole("button", { name: /^Rename/ }).click();
  const rename = page.getByRole("dialog", { name: "Rename the group" });
  await rename.getByLabel("Name of the group").fill("of one kind");
  await rename.getByRole("button", { name: "Save" }).click();
  await expect(groups.first()).toContainText("of one kind");

  // What each execution found, also as a file.
  await page.getByRole("link", { name: "Executions" }).click();
  const run = page.getByRole("main").locator("tbody tr").first();
  await expect(run).toContainText("completed");
  const saved = page.waitForEvent("download");
  await run.getByRole("button", { name: /^Export/ }).click();
  expect((await saved).suggestedFilename()).toMatch(/\.csv$/);
  await accessible(page);
  await phone(page);
  await run.getByRole("button", { name: /^Groups/ }).click();
  await expect(groups).toHaveCount(4);

  // A point leads to its document.
  await drawn.locator("circle").first().dispatchEvent("click");
  await expect(page.getByRole("dialog", { name: "Document", exact: true })).toBeVisible();
  await page.goBack();
  await expect(groups).toHaveCount(4);

  await page.getByRole("button", { name: "Make a taxonomy of them" }).click();
  const promote = page.getByRole("dialog", { name: "Make a taxonomy of the groups" });
  await promote.getByLabel("Name", { exact: true }).fill("subjects");
  await promote.getByLabel("Field that documents take over").fill("subject");
  await accessible(page);
  await promote.getByRole("button", { name: "Create", exact: true }).click();
  await expect(page.getByRole("heading", { level: 1, name: "subjects" })).toBeVisible();
  const nodes = page.getByRole("region", { name: "Nodes" }).getByRole("listitem");
  await expect(nodes).toHaveCount(4);
  await expect(nodes.filter({ hasText: "of one kind" })).toHaveCount(1);
  await page.getByLabel("Documents of").selectOption({ index: 1 });
  await page.getByRole("button", { name: "Find their nodes" }).click();
  await expect(page.getByRole("region", { name: "Try it" }).getByRole("status").locator("tbody tr, p").first()).toBeVisible();
  await accessible(page);
  await steady(page);
  await picture(page, "taxonomy");
  await phone(page);

  // Applied to its own nodes, which no other journey reads.
  await page.getByRole("button", { name: "Apply", exact: true }).click();
  const apply = page.getByRole("dialog", { name: "Apply the taxonomy" });
  const own = await apply.getByLabel("Documents of").locator("option", { hasText: "subjects" }).first().getAttribute("value");
  await apply.getByLabel("Documents of").selectOption(own);
  await accessible(page);
  await picture(page, "taxonomy-apply");
  await apply.getByRole("button", { name: "Apply", exact: true }).click();
  await expect(page.getByText(/documents found their node/)).toBeVisible({ timeout: 120_000 });
  await page.getByRole("button", { name: /^Stop for/ }).click();
  await expect(page.getByRole("button", { name: /^Stop for/ })).toHaveCount(0);

  await page.getByRole("button", { name: "Clone", exact: true }).click();
  const clone = page.getByRole("dialog", { name: "Clone the taxonomy" });
  await clone.getByLabel("Name of the clone").fill("subjects-next");
  await accessible(page);
  await clone.getByRole("button", { name: "Clone", exact: true }).click();
  await expect(page.getByRole("heading", { level: 1, name: "subjects-next" })).toBeVisible();
  await expect(nodes).toHaveCount(4);

  await open(page, "Taxonomies");
  await accessible(page);
  await picture(page, "taxonomies");
  await page.getByRole("button", { name: "Create taxonomy" }).first().click();
  const write = page.getByRole("dialog", { name: "Create a taxonomy" });
  await write.getByLabel("Is taken from").selectOption("literal");
  await expect(write.getByLabel("Which")).toHaveCount(0);
  await accessible(page);
  await picture(page, "taxonomy-form");
  await phone(page);
  await write.getByLabel("Its nodes are", { exact: true }).selectOption("levels");
  await expect(write.getByLabel("Its nodes are the documents of")).toHaveCount(0);
  await write.getByRole("button", { name: "Add a node" }).click();
  await expect(write.getByLabel("Below", { exact: true })).toHaveCount(2);
  await accessible(page);
  await write.getByLabel("Its nodes are", { exact: true }).selectOption("path");
  await expect(write.getByLabel("Field that tells the place")).toBeVisible();
  await write.getByRole("button", { name: "Cancel" }).click();
  await page.getByRole("button", { name: "Remove subjects-next" }).click();
  await page.getByRole("dialog", { name: "Remove subjects-next?" }).getByRole("button", { name: "Remove" }).click();
  await expect(page.getByRole("button", { name: "Remove subjects-next" })).toHaveCount(0);
  await page.getByRole("button", { name: "Remove subjects" }).click();
  await page.getByRole("dialog", { name: "Remove subjects?" }).getByRole("button", { name: "Remove" }).click();
  await expect(page.getByRole("heading", { name: "No taxonomy here" })).toBeVisible();
  await open(page, "Clusters");
  await picture(page, "clusters");
  await page.getByRole("button", { name: "Remove kinds of pictures" }).click();
  await page.getByRole("dialog", { name: "Remove kinds of pictures?" }).getByRole("button", { name: "Remove" }).click();
  await expect(page.getByRole("heading", { name: "No cluster here" })).toBeVisible();
  // What the taxonomy was made of stays; later journeys choose among what the demo has.
  for (const [kind, id, kept] of [["retrievers", "retriever_id", "picture-book-search"], ["collections", "collection_id", "picture"]] as const) {
    const all = (await send(page, "POST", `/v1/${kind}/list`, {}, namespace)).results as Record<string, string>[];
    for (const one of all) {
      const name = one[id.replace("_id", "_name")];
      if (name.includes("subjects")) await send(page, "DELETE", `/v1/${kind}/${one[id]}`, undefined, namespace);
      else expect(name).toContain(kept.split("-")[0]);
    }
  }
  expect(faults).toEqual([]);
});

test("what changes is told as it changes", async ({ page }) => {
  const faults = watch(page);
  const namespace = await inDemo(page, "Activity");
  const rows = page.getByRole("main").locator("tbody tr");
  await expect(rows.first()).toBeVisible();
  await accessible(page);
  const collections = (await send(page, "POST", "/v1/collections/list?limit=1", {}, namespace)).results as { collection_id: string }[];
  const { collection_id } = collections[0];
  const documents = (await send(page, "POST", `/v1/collections/${collection_id}/documents/list?limit=1`, {}, namespace)).results as { document_id: string }[];
  const note = await send(page, "POST", "/v1/annotations", { document_id: documents[0].document_id, collection_id, label: "seen at once" }, namespace);
  const row = rows.filter({ hasText: "annotation created" }).filter({ hasText: String(note.annotation_id) });
  await expect(row).toBeVisible();
  await page.getByLabel("Kind", { exact: true }).selectOption("annotation");
  await expect(page).toHaveURL(/kind=annotation/);
  await expect(rows.filter({ hasNotText: "annotation" })).toHaveCount(0);
  await expect(row).toBeVisible();
  await steady(page);
  await accessible(page);
  await picture(page, "activity");
  await phone(page);
  // Without its tick it asks no more.
  await page.getByRole("checkbox", { name: "Live" }).uncheck();
  let asked = 0;
  page.on("request", (request) => (asked += request.url().includes("/v1/events") ? 1 : 0));
  await page.waitForTimeout(4_000);
  expect(asked).toBeLessThanOrEqual(1);
  await send(page, "DELETE", `/v1/annotations/${note.annotation_id}`, undefined, namespace);

  // An alert is called by its name, and leads to what it found.
  await page.getByLabel("Kind", { exact: true }).selectOption("");
  await page.getByRole("checkbox", { name: "Live" }).check();
  const watching = {
    name: "batches that fail", source: "system", system_condition: { type: "batch_failed", params: {} },
    notification_config: { channels: [{ channel_type: "webhook", config: { url: "https://example.com/hook" } }] },
  };
  const alert = await send(page, "POST", "/v1/alerts", watching, namespace);
  const told = rows.filter({ hasText: "alert created" });
  await told.getByRole("link", { name: "batches that fail" }).click();
  await expect(page).toHaveURL(new RegExp(`/alerts\\?log=${alert.alert_id}$`));
  await expect(page.getByRole("dialog", { name: "History of batches that fail" })).toBeVisible();
  await send(page, "DELETE", `/v1/alerts/${alert.alert_id}`, undefined, namespace);
  expect(faults).toEqual([]);
});

test("an app tells how it is visited", async ({ page }) => {
  const faults = watch(page);
  const server: Owner = { url: url(), key: key(), log: log() };
  const app = await serve(server, "tide-tables", { "index.html": '<!doctype html><html lang="en"><title>Tides</title><h1>High water</h1></html>' });
  await signIn(page);
  await open(page, "Apps");
  await page.getByRole("link", { name: "tide-tables", exact: true }).click();
  await page.getByRole("link", { name: "Visits" }).click();
  await expect(page.getByText("No page reported an error.")).toBeVisible();
  await accessible(page);

  for (const place of ["/", "/?tide=high"]) {
    expect((await visit(`${origin(server, "tide-tables")}${place}`, { accept: "text/html" })).status).toBe(200);
  }
  const report = (event_type: string, metadata: unknown): Promise<unknown> =>
    call(server, "POST", "/v1/public/apps/tide-tables/interactions", { event_type, metadata });
  await report("error", { type: "TypeError", message: "the moon is undefined", url: "/low" });
  await report("web_vital", { name: "LCP", value: 1240 });
  await report("web_vital", { name: "CLS", value: 0.02 });
  const pages = page.locator(".stat").filter({ hasText: "Pages opened" });
  // What is counted is written a moment later, each kind for itself.
  await expect(async () => {
    await page.reload();
    await expect(page.getByRole("heading", { name: "Errors over time" })).toBeVisible();
    const soon = { timeout: 5_000 };
    await expect(pages).toContainText("2", soon);
    await expect(page.getByRole("row", { name: /the moon is undefined/ })).toContainText("/low", soon);
    await expect(page.getByRole("row", { name: /LCP/ })).toContainText("1240 ms", soon);
    await expect(page.getByRole("row", { name: /CLS/ })).toContainText("0.02", soon);
  }).toPass({ timeout: 120_000 });
  await expect(page.getByRole("img", { name: "Errors" })).toBeVisible();
  await accessible(page);
  await steady(page);
  await picture(page, "app-visits");
  await phone(page);
  await page.getByLabel("Span of time").selectOption("168");
  await expect(page).toHaveURL(/hours=168/);
  await expect(pages).toContainText("2");
  await send(page, "DELETE", `/v1/apps/${app}`);
  expect(faults).toEqual([]);
});
