import { createServer, type IncomingHttpHeaders, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { expect } from "@playwright/test";
import { accessible, add, fetched, inDemo, key, open, phone, picture, send, signIn, steady, test, url, watch } from "./help.ts";

/** Something that the server may ask, outside of it: answers with the status that is set, and keeps what came. */
interface Outside {
  url: string;
  status: number;
  got: { headers: IncomingHttpHeaders; body: string }[];
  close(): void;
}

async function outside(): Promise<Outside> {
  const one = { url: "", status: 200, got: [] as Outside["got"], close: () => {} };
  const server: Server = createServer((request, response) => {
    let body = "";
    request.on("data", (piece: Buffer) => (body += piece.toString()));
    request.on("end", () => {
      one.got.push({ headers: request.headers, body });
      response.writeHead(one.status).end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.2", resolve));
  one.url = `http://127.0.0.2:${(server.address() as AddressInfo).port}`;
  one.close = () => void server.close();
  return one;
}

const headers = (namespace?: string): Record<string, string> => ({
  Authorization: `Bearer ${key()}`,
  ...(namespace ? { "X-Namespace": namespace } : {}),
});

test("the bell counts what is unread, and the inbox is read, followed and emptied", async ({ page }) => {
  const faults = watch(page);
  await signIn(page);
  const bell = page.getByRole("banner").getByRole("link", { name: /^Notifications/ });
  await expect(bell).toHaveAccessibleName(/, \d+ unread$/);
  await bell.click();
  await expect(page.getByRole("heading", { level: 1, name: "Notifications" })).toBeVisible();
  const row = page.getByRole("row", { name: /Batch .* is done/ }).last();
  await expect(row.getByRole("img", { name: "Unread" })).toBeVisible();
  await accessible(page);
  await steady(page);
  await picture(page, "notifications");
  await phone(page);

  await page.getByLabel("Read", { exact: true }).selectOption("unread");
  await page.getByLabel("Kind", { exact: true }).selectOption("pipeline_success");
  await page.getByLabel("Priority", { exact: true }).selectOption("low");
  await expect(page).toHaveURL(/read=unread.*type=pipeline_success|type=pipeline_success.*read=unread/);
  await expect(page).toHaveURL(/priority=low/);
  await fetched(page);
  // Who follows the link has read it.
  const noted = page.waitForResponse(/\/v1\/notifications\/[^/]+\/read$/);
  await row.getByRole("link", { name: "Open the batch" }).click();
  await noted;
  await expect(page.getByRole("heading", { level: 1, name: /^Batch/ })).toBeVisible();
  await expect(page.getByRole("main").locator("dl.stats")).toContainText("Documents written");
  await page.goBack();
  await page.getByLabel("Read", { exact: true }).selectOption("read");
  await expect(row).toBeVisible();
  await expect(row.getByRole("img", { name: "Unread" })).toHaveCount(0);

  await page.getByRole("button", { name: "Mark all as read" }).click();
  await expect(bell).toHaveAccessibleName("Notifications");
  await page.getByLabel("Read", { exact: true }).selectOption("unread");
  await expect(page.getByRole("heading", { name: "Nothing matches" })).toBeVisible();
  await accessible(page);
  await page.getByLabel("Read", { exact: true }).selectOption("");
  const rows = page.getByRole("main").locator("tbody tr");
  await expect(rows.first()).toBeVisible();
  const before = await rows.count();
  await rows.first().getByRole("button", { name: /^Remove/ }).click();
  await expect(rows).toHaveCount(before - 1);

  // What happens elsewhere rings here, while nobody does anything on the page.
  await expect(bell).toHaveAccessibleName("Notifications");
  const namespaces = (await send(page, "POST", "/v1/namespaces/list", {})).results as { namespace_id: string; namespace_name: string }[];
  const demo = namespaces.find((one) => one.namespace_name === "demo")?.namespace_id;
  const buckets = (await send(page, "POST", "/v1/buckets/list", {}, demo)).results as { bucket_id: string }[];
  await send(page, "POST", `/v1/buckets/${buckets[0]?.bucket_id}/batches`, { auto_submit: true }, demo);
  await expect(bell).toHaveAccessibleName("Notifications, 1 unread", { timeout: 120_000 });
  expect(faults).toEqual([]);
});

test("what is told, and by which way, is chosen", async ({ page }) => {
  const faults = watch(page);
  await signIn(page);
  await page.getByRole("banner").getByRole("link", { name: /^Notifications/ }).click();
  await page.getByRole("button", { name: "Preferences" }).click();
  const ways = page.getByRole("dialog", { name: "Which notifications reach you" });
  const here = ways.getByRole("checkbox", { name: "pipeline failure here" });
  const mailed = ways.getByRole("checkbox", { name: "pipeline failure by e-mail" });
  const address = ways.getByLabel("E-mails go to");
  await expect(here).toBeChecked();
  await expect(mailed).not.toBeChecked();
  await mailed.check();
  await address.fill("desk@example.com");
  await accessible(page);
  await picture(page, "notification-ways");
  await phone(page);
  await ways.getByRole("button", { name: "Save" }).click();
  await expect(ways).toBeHidden();
  const set = (await send(page, "GET", "/v1/notifications/preferences")).preferences as Record<string, unknown>;
  expect(set.pipeline_failure).toEqual({ in_app: true, email: true });
  expect(set.custom).toEqual({ in_app: true, email: false });

  // It is shown as it was set, and taken back.
  await page.getByRole("button", { name: "Preferences" }).click();
  await expect(mailed).toBeChecked();
  await expect(address).toHaveValue("desk@example.com");
  await mailed.uncheck();
  await address.fill("");
  await ways.getByRole("button", { name: "Save" }).click();
  await expect(ways).toBeHidden();
  const organization = await send(page, "GET", "/v1/organizations");
  expect(organization.notifications_email ?? null).toBeNull();
  expect(faults).toEqual([]);
});

test("a webhook is made, shows its secret once, delivers, fails, replays and is removed", async ({ page }) => {
  const faults = watch(page);
  const receiver = await outside();
  try {
    const namespace = await inDemo(page, "Collections");
    await open(page, "Webhooks");
    await expect(page.getByRole("heading", { name: "No webhook yet" })).toBeVisible();
    await accessible(page);
    await picture(page, "webhooks-empty");
    await page.getByRole("button", { name: "Create webhook" }).first().click();
    const form = page.getByRole("dialog", { name: "Create a webhook" });
    await form.getByLabel("Name", { exact: true }).fill("shop");
    await form.getByRole("group", { name: "annotation" }).getByRole("checkbox", { name: "created" }).check();
    await form.getByRole("group", { name: "annotation" }).getByRole("checkbox", { name: "deleted" }).check();
    await form.getByLabel("Address").fill(`${receiver.url}/hook`);
    await accessible(page);
    await picture(page, "webhook-form");
    await phone(page);
    // Another kind of channel asks for other things.
    await form.getByLabel("Kind", { exact: true }).selectOption("slack");
    await expect(form.getByLabel("Address")).toHaveValue("");
    await form.getByLabel("Kind", { exact: true }).selectOption("webhook");
    await form.getByLabel("Address").fill(`${receiver.url}/hook`);
    await form.getByRole("button", { name: "Create", exact: true }).click();

    const secret = page.getByRole("dialog", { name: "Copy this secret now" });
    await expect(secret.locator("code")).toContainText(/^whsec_/);
    await page.keyboard.press("Escape");
    await expect(secret).toBeVisible();
    await accessible(page);
    await picture(page, "webhook-secret");
    await secret.getByRole("button", { name: "I have stored it" }).click();
    await secret.getByRole("button", { name: "Close without a copy" }).click();
    const row = page.getByRole("row", { name: /shop/ });
    await expect(row).toContainText("nothing sent yet");
    await row.getByRole("button", { name: "More for shop" }).click();
    await row.getByRole("menuitem", { name: "Send a test" }).click();
    await expect(page.getByText("webhook delivered: the receiver answered 200")).toBeVisible();
    expect(receiver.got).toHaveLength(1);
    receiver.got.length = 0;

    // An event: an annotation of a document.
    const listed = await page.request.post(`${url()}/v1/collections/list`, { headers: headers(namespace), data: {} });
    const collection = ((await listed.json()) as { results: { collection_id: string }[] }).results[0].collection_id;
    const documents = await page.request.post(`${url()}/v1/collections/${collection}/documents/list?limit=1`, { headers: headers(namespace), data: {} });
    const id = ((await documents.json()) as { results: { document_id: string }[] }).results[0].document_id;
    const annotate = async (): Promise<string> => {
      const data = { document_id: id, collection_id: collection, label: "journey" };
      const made = await page.request.post(`${url()}/v1/annotations`, { headers: headers(namespace), data });
      expect(made.ok()).toBe(true);
      return ((await made.json()) as { annotation_id: string }).annotation_id;
    };
    const annotation = await annotate();
    await expect.poll(() => receiver.got.length).toBe(1);
    expect(receiver.got[0].headers["webhook-signature"]).toMatch(/^v1,/);
    receiver.status = 503;
    const gone = await page.request.delete(`${url()}/v1/annotations/${annotation}`, { headers: headers(namespace) });
    expect(gone.ok()).toBe(true);
    await expect.poll(() => receiver.got.length).toBeGreaterThan(1);

    // The receiver knows of a delivery before the server has noted how it went.
    await expect(async () => {
      await page.reload();
      await expect(row).toContainText("failing", { timeout: 10_000 });
    }).toPass({ timeout: 120_000 });
    await row.getByRole("button", { name: "Log shop" }).click();
    const log = page.getByRole("dialog", { name: "Deliveries of shop" });
    await expect(page).toHaveURL(/log=wh_/);
    await expect(log.getByRole("row", { name: /annotation.created/ })).toContainText("200");
    await expect(log.getByRole("row", { name: /annotation.deleted/ })).toContainText("503");
    await accessible(page);
    await picture(page, "webhook-log");
    await phone(page);
    await log.getByLabel("Status of the delivery").selectOption("delivered");
    await expect(log.locator("tbody tr")).toHaveCount(1);
    receiver.status = 200;
    const before = receiver.got.length;
    await log.getByRole("button", { name: "Replay annotation.created" }).click();
    await expect.poll(() => receiver.got.length).toBeGreaterThan(before);
    await page.keyboard.press("Escape");
    await expect(page).not.toHaveURL(/log=/);

    // Switched off and on again by its form and by its row.
    await row.getByRole("button", { name: "Change shop" }).click();
    const change = page.getByRole("dialog", { name: "Change shop" });
    await expect(change.getByLabel("Address")).toHaveValue(`${receiver.url}/hook`);
    await expect(change.getByRole("group", { name: "annotation" }).getByRole("checkbox", { name: "created" })).toBeChecked();
    await change.getByRole("checkbox", { name: "Active" }).uncheck();
    await change.getByRole("button", { name: "Save" }).click();
    await expect(row).toContainText("off");
    await picture(page, "webhooks");
    await phone(page);
    await row.getByRole("button", { name: "Set active shop" }).click();
    await expect(row.getByRole("button", { name: "Set active shop" })).toHaveCount(0);

    // A receiver that is added later has a secret, too, which is told as once.
    await row.getByRole("button", { name: "Change shop" }).click();
    await add(change, "Add a channel");
    await change.getByRole("group", { name: "channel 2" }).getByLabel("Address").fill(`${receiver.url}/second`);
    await change.getByRole("button", { name: "Save" }).click();
    await expect(secret.locator("code")).toContainText(/^whsec_/);
    await secret.getByRole("button", { name: "I have stored it" }).click();
    await secret.getByRole("button", { name: "Close without a copy" }).click();
    await expect(secret).toBeHidden();

    await row.getByRole("button", { name: "More for shop" }).click();
    await row.getByRole("menuitem", { name: "Remove" }).click();
    const question = page.getByRole("dialog", { name: "Remove shop?" });
    await expect(question).toContainText("its log is removed");
    await question.getByRole("button", { name: "Remove" }).click();
    await expect(page.getByRole("heading", { name: "No webhook yet" })).toBeVisible();
    expect(faults).toEqual([]);
  } finally {
    receiver.close();
  }
});

test("a trigger is read before it is kept, run, paused, changed and removed, with its history", async ({ page }) => {
  const faults = watch(page);
  await inDemo(page, "Triggers");
  await expect(page.getByRole("heading", { name: "No trigger here" })).toBeVisible();
  await accessible(page);
  await page.getByRole("button", { name: "Create trigger" }).first().click();
  const form = page.getByRole("dialog", { name: "Create a trigger" });
  await form.getByLabel("Name", { exact: true }).fill("morning search");
  await form.getByLabel("Cron expression").fill("0 9 * * 1-5");
  await form.getByLabel("Time zone").fill("Europe/Vienna");
  await expect(form.getByRole("status")).toHaveText(/^It runs on (\w{3} \d+ \w{3} 09:00, ){4}\w{3} \d+ \w{3} 09:00 \(Europe\/Vienna\)\.$/);
  await expect(form.getByRole("status")).not.toContainText(/Sat|Sun/);
  await form.getByLabel("Retriever").selectOption({ label: "picture-book-search" });
  await form.getByRole("group", { name: "Inputs" }).getByLabel(/^query/).fill("striped animal");
  await accessible(page);
  await picture(page, "trigger-form");
  await phone(page);
  await form.getByRole("button", { name: "Create", exact: true }).click();
  const row = page.getByRole("row", { name: /morning search/ });
  await expect(row).toContainText("0 9 * * 1-5 (Europe/Vienna)");
  await expect(row).toContainText("picture-book-search");
  await expect(row).toContainText(/next in \d+/);
  const coming = page.getByRole("region", { name: "The next seven days" });
  await expect(coming.getByText("09:00 morning search (Europe/Vienna)").first()).toBeVisible();

  await row.getByRole("button", { name: "Run now morning search" }).click();
  await expect(row).toContainText("completed");
  await row.getByRole("button", { name: "History morning search" }).click();
  const history = page.getByRole("dialog", { name: "History of morning search" });
  await expect(history.locator("tbody tr")).toHaveCount(1);
  await expect(history.locator("tbody tr")).toContainText("completed");
  await accessible(page);
  await picture(page, "trigger-history");
  await phone(page);
  await page.keyboard.press("Escape");
  await row.getByRole("button", { name: "More for morning search" }).click();
  await row.getByRole("menuitem", { name: "Pause" }).click();
  await expect(row).toContainText("paused");
  await expect(coming).toHaveCount(0);

  await row.getByRole("button", { name: "Change morning search" }).click();
  const change = page.getByRole("dialog", { name: "Change morning search" });
  await expect(change.getByLabel("Retriever")).toHaveCount(0);
  await change.getByLabel("Cron expression").fill("0 25 * * *");
  await change.getByRole("button", { name: "Save" }).click();
  await expect(change.getByRole("alert")).toContainText("says no moment");
  await change.getByLabel("Cron expression").fill("*/10 * * * *");
  await change.getByRole("button", { name: "Save" }).click();
  await expect(row).toContainText("*/10 * * * *");
  await row.getByRole("button", { name: "More for morning search" }).click();
  await row.getByRole("menuitem", { name: "Resume" }).click();
  await expect(row).toContainText("active");

  // The other kinds of schedule and of action, each with its own fields.
  for (const [name, kind, filled, action, chosen, told] of [
    ["often", "interval", { "Seconds from one to the next": "7200" }, "collection_trigger", "Collection", "every 2 h"],
    ["noted", "event", { "What happens": "annotation.created", "After so many": "5" }, "batch_rerun", "Batch", "on annotation.created, 5 times"],
    ["grown", "conditional", { "What is measured": "volume", Threshold: "0.5", Collection: 1 }, "retriever_execution", "Retriever", "changed by 0.5"],
    ["failing", "conditional", { "What is measured": "metric", Figure: "error_rate", Is: "gt", Threshold: "0.2" }, "retriever_execution", "Retriever", "when error rate is above 0.2"],
  ] as const) {
    await page.getByRole("button", { name: "Create trigger" }).first().click();
    await form.getByLabel("Name", { exact: true }).fill(name);
    await form.getByLabel("Runs", { exact: true }).selectOption(kind);
    for (const [label, value] of Object.entries(filled)) {
      const field = form.getByLabel(label, { exact: true });
      if (typeof value === "number") await field.selectOption({ index: value });
      else if ((await field.evaluate((node) => node.tagName)) === "SELECT") await field.selectOption(value);
      else await field.fill(value);
    }
    await form.getByLabel("Does", { exact: true }).selectOption(action);
    await form.getByLabel(chosen, { exact: true }).last().selectOption({ index: 1 });
    await form.getByRole("button", { name: "Create", exact: true }).click();
    await expect(page.getByRole("row", { name: new RegExp(`^${name}`) })).toContainText(told);
  }
  await accessible(page);
  await steady(page);
  await picture(page, "triggers");
  await phone(page);
  await page.getByLabel("Action", { exact: true }).selectOption("batch_rerun");
  await expect(page.getByRole("main").locator("tbody tr")).toHaveCount(1);
  await page.getByLabel("Action", { exact: true }).selectOption("");
  for (const name of ["morning search", "often", "noted", "grown", "failing"]) {
    const more = page.getByRole("button", { name: `More for ${name}` });
    await more.click();
    await page.getByRole("menuitem", { name: "Remove" }).click();
    await page.getByRole("dialog", { name: `Remove ${name}?` }).getByRole("button", { name: "Remove" }).click();
    await expect(more).toHaveCount(0);
  }
  await expect(page.getByRole("heading", { name: "No trigger here" })).toBeVisible();
  // The browser itself logs each refusal of the server.
  expect(faults.filter((fault) => !fault.includes("422"))).toEqual([]);
});

test("a storage is connected, tested, changed and removed", async ({ page }) => {
  const faults = watch(page);
  const storage = await outside();
  try {
    await signIn(page);
    await open(page, "Connections");
    await expect(page.getByRole("heading", { name: "No connection yet" })).toBeVisible();
    await accessible(page);
    await page.getByRole("button", { name: "Create connection" }).first().click();
    const form = page.getByRole("dialog", { name: "Create a connection" });
    await form.getByLabel("Name", { exact: true }).fill("archive");
    await form.getByLabel("Address").fill(storage.url);
    await form.getByLabel("Id of the access key").fill("AKIAEXAMPLE");
    await form.getByLabel("Secret access key").fill("not-shown-again");
    await expect(form.getByLabel("Secret access key")).toHaveAttribute("type", "password");
    await accessible(page);
    await picture(page, "connection-form");
    await phone(page);
    // What does not work is not kept.
    storage.status = 500;
    await form.getByRole("button", { name: "Create", exact: true }).click();
    await expect(form.getByRole("alert")).toContainText("nothing was saved");
    storage.status = 200;
    await form.getByRole("button", { name: "Create", exact: true }).click();
    const row = page.getByRole("row", { name: /archive/ });
    await expect(row).toContainText(storage.url);
    expect(storage.got[0].headers.authorization).toContain("AKIAEXAMPLE");
    expect(await page.content()).not.toContain("not-shown-again");

    await row.getByRole("button", { name: "Test archive" }).click();
    await expect(page.getByText(/^It works/)).toBeVisible();
    storage.status = 500;
    await row.getByRole("button", { name: "Test archive" }).click();
    await expect(page.getByRole("main").getByRole("alert")).toBeVisible();
    await accessible(page);
    await picture(page, "connections");
    await phone(page);

    await row.getByRole("button", { name: "Change archive" }).click();
    const change = page.getByRole("dialog", { name: "Change archive" });
    await change.getByLabel("Region").fill("eu-central-1");
    await change.getByRole("button", { name: "Save" }).click();
    await expect(change).toBeHidden();
    // The secret that was not sent is the one that was kept.
    storage.status = 200;
    await row.getByRole("button", { name: "Test archive" }).click();
    await expect(page.getByText(/^It works/).first()).toBeVisible();
    await row.getByRole("button", { name: "Remove archive" }).click();
    await page.getByRole("dialog", { name: "Remove archive?" }).getByRole("button", { name: "Remove" }).click();
    await expect(page.getByRole("heading", { name: "No connection yet" })).toBeVisible();
    // The browser itself logs each refusal of the server.
    expect(faults.filter((fault) => !fault.includes("400"))).toEqual([]);
  } finally {
    storage.close();
  }
});

test("a document is annotated, changed with its versions, and cleared", async ({ page }) => {
  const faults = watch(page);
  await inDemo(page, "Collections");
  await page.getByRole("main").getByRole("row").getByRole("link").first().click();
  await page.getByRole("main").locator("tbody tr").first().getByRole("button").first().click();
  const panel = page.getByRole("dialog", { name: "Document", exact: true });
  await panel.getByRole("button", { name: "Annotate" }).click();
  const form = page.getByRole("dialog", { name: "Annotate this document" });
  await form.getByLabel("Label").fill("approved");
  await form.getByLabel("Confidence").fill("0.7");
  await form.getByLabel("Why").fill("Clear and in focus.");
  await accessible(page);
  await form.getByRole("button", { name: "Save" }).click();
  const note = panel.getByRole("listitem").filter({ hasText: "approved" }).first();
  await expect(note).toContainText("70 %");
  await expect(note).toContainText("Clear and in focus.");
  await note.getByRole("button", { name: "Change approved" }).click();
  const change = page.getByRole("dialog", { name: "Change the annotation" });
  await expect(change.getByLabel("Label")).toHaveValue("approved");
  await change.getByLabel("Confidence").fill("0.95");
  await change.getByRole("button", { name: "Save" }).click();
  await expect(note).toContainText("95 %");
  await note.getByText("1 version earlier").click();
  await expect(note).toContainText("Version 1: confidence was 0.7");
  await accessible(page);
  await picture(page, "annotations");
  await phone(page, note);
  await note.getByRole("button", { name: "Remove approved" }).click();
  await page.getByRole("dialog", { name: "Remove approved?" }).getByRole("button", { name: "Remove" }).click();
  await expect(note).toHaveCount(0);
  await expect(panel).toBeVisible();
  expect(faults).toEqual([]);
});

test("annotations are reviewed by keys, corrected and found again", async ({ page }) => {
  const faults = watch(page);
  const namespace = await inDemo(page, "Collections");
  const collections = (await send(page, "POST", "/v1/collections/list", {}, namespace)).results as { collection_id: string }[];
  const collection = collections[0].collection_id;
  const list = await send(page, "POST", `/v1/collections/${collection}/documents/list?limit=1`, {}, namespace);
  const document = (list.results as { document_id: string }[])[0].document_id;
  const labels = [0.3, 0.5, 0.7].map((confidence) => ({ confidence, label: `sure ${confidence}` }));
  const create = labels.map((one) => ({ ...one, document_id: document, collection_id: collection }));
  const made = await send(page, "POST", "/v1/annotations/bulk", { create }, namespace);
  const ids = (made.results as { annotation_id: string }[]).map((one) => one.annotation_id);

  await open(page, "Review");
  await page.getByRole("searchbox", { name: "Label" }).fill("sure 0.");
  await page.keyboard.press("Enter");
  const rows = page.getByRole("main").locator("tbody tr");
  await expect(page).toHaveURL(/q=sure/);
  await fetched(page);
  await expect(rows).toHaveCount(3);
  await expect(rows.first()).toContainText("30 %");
  await accessible(page);
  await picture(page, "review");
  // Nobody has to push the table aside for its buttons.
  const aside = (): Promise<number> => page.getByRole("region", { name: "Annotations" }).evaluate((table) => table.scrollWidth - table.clientWidth);
  await expect.poll(aside).toBeLessThanOrEqual(0);
  await phone(page);

  // The least certain first, by keys: the focus stays in the list.
  await page.getByRole("region", { name: "Annotations" }).focus();
  const keys = page.getByRole("group", { name: /^Annotations, by keys/ });
  await page.keyboard.press("a");
  await expect(rows).toHaveCount(2);
  await expect(rows.first()).toContainText("50 %");
  await expect(keys).toBeFocused();
  await fetched(page);
  await page.keyboard.press("r");
  await expect(rows).toHaveCount(1);
  await expect(keys).toBeFocused();
  await fetched(page);
  await page.keyboard.press("c");
  const form = page.getByRole("dialog", { name: "Correct the annotation" });
  await expect(form.getByLabel("Label")).toHaveValue("sure 0.7");
  await form.getByLabel("Label").fill("sure 0.7, and right");
  await form.getByRole("button", { name: "Save" }).click();
  await expect(page.getByRole("heading", { name: "Nothing to review" })).toBeVisible();
  await page.getByLabel("What came of it").selectOption("corrected");
  await expect(rows).toHaveCount(1);
  await expect(rows.first()).toContainText("and right");
  await send(page, "POST", "/v1/annotations/bulk", { delete: ids }, namespace);
  expect(faults).toEqual([]);
});
