import { expect } from "@playwright/test";
import { accessible, fetched, inDemo, phone, picture, send, test, url, watch } from "./help.ts";

interface Retriever {
  retriever_id: string;
  retriever_name: string;
}

test("a draft is run while it is written, its changes are read, and its page moves to the copy", async ({ page }) => {
  const faults = watch(page);
  const namespace = await inDemo(page, "Retrievers");
  const listed = await send(page, "POST", "/v1/retrievers/list", {}, namespace);
  const source = (listed.results as Retriever[]).find((one) => one.retriever_name === "picture-book-search");
  const copy = await send(page, "POST", `/v1/retrievers/${source?.retriever_id}/clone`, { retriever_name: "book-drafts" }, namespace);
  const id = (copy.retriever as Retriever).retriever_id;
  await send(page, "POST", `/v1/retrievers/${id}/publish`, { public_name: "book-drafts", display_name: "Book drafts", tags: ["books"] }, namespace);

  await page.goto(`${url()}/console/ns/${namespace}/retrievers/${id}/edit`);
  const stages = page.getByRole("main").locator("li.stage");
  await expect(stages.first()).toBeVisible();
  const before = await stages.count();
  const live = page.getByRole("region", { name: "Try the draft" });
  const status = page.getByRole("status").filter({ hasText: /changed\.$/ });
  await expect(status).toHaveText("No stage is changed.");

  // Addresses of features are picked, inputs are completed, nothing has to be run by hand.
  await expect(page.getByLabel(/^feature uri/i).first()).toHaveJSProperty("tagName", "SELECT");
  await expect(page.locator("#templates option").first()).toHaveAttribute("value", "{{INPUT.query}}");
  await live.getByLabel(/^query/).fill("a bird");
  await expect(live.getByRole("article").first()).toBeVisible();
  await expect(stages.first()).toContainText(/ in, \d+ out, /);
  await expect.poll(() => live.getByRole("article").count()).toBeGreaterThan(2);
  await fetched(page);
  const all = await live.getByRole("article").count();

  await page.getByLabel("Stage to add").selectOption("limit");
  await page.getByRole("button", { name: "Add stage" }).click();
  await page.getByRole("region", { name: "limit" }).getByLabel("limit", { exact: true }).fill("2");
  await expect(live.getByRole("article")).toHaveCount(2);
  await expect(stages.last()).toContainText(/ in, 2 out, /);
  await expect(status).toHaveText("1 stage is changed.");
  await accessible(page);
  await picture(page, "builder");
  await phone(page);
  await live.getByRole("tab", { name: "Stages" }).click();
  await expect(live.getByRole("row", { name: /limit/ })).toContainText("2");
  await accessible(page);
  await live.getByRole("tab", { name: "Explain" }).click();
  await expect(live.getByRole("region", { name: "Ranking" })).toContainText(/ 1 \(/);
  await live.getByRole("tab", { name: "Results" }).click();

  // Switched off, it is not run; copied, it is a stage of its own; dragged, it stands elsewhere.
  await page.getByRole("checkbox", { name: "limit is on" }).uncheck();
  await expect(live.getByRole("article")).toHaveCount(all);
  await expect(status).toHaveText("No stage is changed.");
  await page.getByRole("checkbox", { name: "limit is on" }).check();
  await page.getByRole("button", { name: "Duplicate limit" }).click();
  await expect(stages).toHaveCount(before + 2);
  await expect(stages.last()).toContainText("limit_2");
  // What the run says stands in the stages: they are dragged once that is there, and move no more.
  await expect(stages.last()).toContainText(/ in, 2 out, /);
  await fetched(page);
  await expect(async () => {
    if (!(await stages.nth(before).textContent())?.includes("limit_2")) await stages.last().dragTo(stages.nth(before));
    await expect(stages.nth(before)).toContainText("limit_2", { timeout: 2_000 });
  }).toPass();
  await page.getByRole("button", { name: "Take limit_2 out" }).click();
  await expect(stages).toHaveCount(before + 1);

  // What the server refuses is said beside the draft.
  await stages.last().getByRole("button").first().click();
  const limit = page.getByRole("region", { name: "limit" }).getByLabel("limit", { exact: true });
  await limit.fill("many");
  await expect(live.getByRole("alert")).toContainText("limit");
  await limit.fill("2");
  await expect(live.getByRole("article")).toHaveCount(2);
  await live.getByRole("checkbox", { name: "Run as I type" }).uncheck();
  await live.getByLabel(/^query/).fill("a boat on the water");
  await live.getByRole("button", { name: "Run" }).click();
  await expect(live.getByRole("article")).toHaveCount(2);

  await page.getByRole("button", { name: "Save as a new retriever" }).click();
  const dialog = page.getByRole("dialog", { name: "Save as a new retriever" });
  await expect(dialog.getByRole("listitem").filter({ hasText: "limit" })).toContainText("added");
  await expect(dialog.getByLabel("Name")).toHaveValue("book-drafts-v2");
  await dialog.getByRole("checkbox", { name: "Move the published page to it" }).check();
  await accessible(page);
  await picture(page, "builder-changes");
  await phone(page);
  await dialog.getByRole("button", { name: "Save", exact: true }).click();
  await expect(page.getByRole("heading", { level: 1, name: "book-drafts-v2" })).toBeVisible();
  const made = /retrievers\/([^/?]+)/.exec(page.url())?.[1] ?? "";
  const moved = await send(page, "GET", `/v1/retrievers/${made}/publish`, undefined, namespace);
  expect([moved.public_name, moved.tags]).toEqual(["book-drafts", ["books"]]);
  const found = await page.request.post(`${url()}/v1/public/retrievers/book-drafts/execute`, { data: { inputs: { query: "a bird" } } });
  expect(((await found.json()) as { documents: unknown[] }).documents).toHaveLength(2);
  for (const one of [made, id]) await send(page, "DELETE", `/v1/retrievers/${one}`, undefined, namespace);
  // The browser itself logs each refusal of the server.
  expect(faults.filter((fault) => !fault.includes("422"))).toEqual([]);
});

test("a new retriever opens the form of its first stage", async ({ page }) => {
  const namespace = await inDemo(page, "Retrievers");
  await page.goto(`${url()}/console/ns/${namespace}/new-retriever`);
  const collections = page.getByRole("group", { name: "Collections" }).getByRole("checkbox");
  await collections.first().check();
  await expect(page.locator("li.stage").first()).toBeVisible();
  await expect(page.locator(".stage-form")).toBeVisible();
  // What saves it is in sight however long the draft is.
  await expect(page.getByRole("button", { name: "Create", exact: true })).toBeInViewport();
  await page.locator("li.stage").last().getByRole("button").first().click();
  await expect(page.locator(".stage-form")).toBeVisible();
});

test("what was written is not lost without a question, and a search that was tried is asked again", async ({ page }) => {
  const faults = watch(page);
  const namespace = await inDemo(page, "Retrievers");
  await page.goto(`${url()}/console/ns/${namespace}/new-retriever`);
  await page.locator("#retriever-text").fill("Half a thought");
  const side = page.getByRole("navigation", { name: "Console" });
  page.once("dialog", (question) => void question.dismiss());
  await side.getByRole("link", { name: "Buckets" }).click();
  await expect(page.locator("#retriever-text")).toHaveValue("Half a thought");
  page.once("dialog", (question) => void question.accept());
  await side.getByRole("link", { name: "Buckets" }).click();
  await expect(page.getByRole("heading", { level: 1, name: "Buckets" })).toBeVisible();

  await side.getByRole("link", { name: "Retrievers" }).click();
  await page.getByRole("main").getByRole("link", { name: "picture-book-search", exact: true }).click();
  await page.getByLabel(/^query/).fill("a bird");
  await page.getByRole("button", { name: "Run" }).click();
  await expect(page.getByRole("tabpanel").getByRole("article").first()).toBeVisible();
  await expect(page).toHaveURL(/inputs=/);
  await page.reload();
  await expect(page.getByLabel(/^query/)).toHaveValue("a bird");
  await expect(page.getByRole("tabpanel").getByRole("article").first()).toBeVisible();
  expect(faults).toEqual([]);
});
