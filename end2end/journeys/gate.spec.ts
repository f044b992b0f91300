import { readFileSync } from "node:fs";
import { expect, type Page } from "@playwright/test";
import { accessible, fetched, key, open, phone, signIn, test, url, watch } from "./help.ts";

const secretOf = (page: Page) => page.getByRole("dialog", { name: "Copy this secret now" });

test("a key is made from words, shown once, and cannot be lost by a stray key", async ({ page }) => {
  const faults = watch(page);
  await signIn(page);
  await open(page, "API keys");
  await page.getByRole("button", { name: "Create key" }).first().click();
  const form = page.getByRole("dialog", { name: "Create an API key" });
  await form.getByLabel("Name", { exact: true }).fill("journey");
  await form.getByRole("radio", { name: /^Write/ }).check();
  await form.getByRole("button", { name: "Hold it to a resource" }).click();
  // Namespaces come first, and are offered by name.
  await expect(form.locator("datalist option", { hasText: /^demo$/ })).toHaveAttribute("value", /^ns_/);
  await form.getByLabel("Kind of resource").selectOption("bucket");
  await form.getByLabel(/^Id, or the start/).fill("raw-*");
  await form.getByLabel("Requests a minute at most").fill("1200");
  await expect(form.getByRole("status")).toHaveText(
    "This key can read and change, in every bucket that starts with raw-, at most 1,200 times a minute, until it is revoked.",
  );
  await accessible(page);
  await phone(page);
  await form.getByRole("button", { name: "Create key" }).click();

  const secret = secretOf(page);
  await expect(secret).toContainText(/loupe_sk_\w{30,}/);
  const text = await secret.locator("code").innerText();
  for (const press of ["Escape", "Escape", "Escape"]) await page.keyboard.press(press);
  await page.mouse.click(5, 5);
  await expect(secret).toBeVisible();
  await accessible(page);
  await secret.getByRole("button", { name: "I have stored it" }).click();
  await expect(secret).toContainText("It was not copied yet");
  // What is said of a copy stands in the dialog alone, where it is read out.
  await secret.getByRole("button", { name: "Copy as curl" }).click();
  await expect(secret.locator(".toasts .toast")).toHaveText(/^(Copied|The browser refused)/);
  await expect(page.locator(".toasts .toast")).toHaveCount(1);
  const saved = page.waitForEvent("download");
  await secret.getByRole("button", { name: "Download .env" }).click();
  const file = await (await saved).path();
  expect(readFileSync(file, "utf8")).toBe(`LOUPE_API_KEY=${text}\n`);
  await secret.getByRole("button", { name: "I have stored it" }).click();
  await expect(secret).toBeHidden();
  expect(await page.content()).not.toContain(text);
  const row = page.getByRole("row", { name: /journey/ });
  await expect(row).toContainText("bucket raw-*");

  await page.getByRole("button", { name: "Change journey" }).click();
  const change = page.getByRole("dialog", { name: "Change journey" });
  await expect(change.getByLabel(/^Id, or the start/)).toHaveValue("raw-*");
  await expect(change.getByLabel("Kind of resource")).toHaveValue("bucket");
  await expect(change.getByRole("radio", { name: /^Write/ })).toBeChecked();
  await change.getByRole("radio", { name: /^Delete/ }).check();
  await change.getByLabel("Requests a minute at most").fill("600");
  await change.getByText("Only some operations").click();
  await change.getByLabel("cancel job").check();
  await expect(change.getByRole("status")).toHaveText(
    "This key can read, change and remove, in every bucket that starts with raw- (only: cancel job), at most 600 times a minute, until it is revoked.",
  );
  await accessible(page);
  await change.getByRole("button", { name: "Save" }).click();
  await expect(change).toBeHidden();
  await expect(row).toContainText("delete");
  // Once more, for what it is by now.
  await page.getByRole("button", { name: "Change journey" }).click();
  await expect(change.getByLabel(/^Id, or the start/)).toHaveValue("raw-*");
  await expect(change.getByRole("radio", { name: /^Delete/ })).toBeChecked();
  await change.getByRole("button", { name: "Cancel" }).click();
  await expect(change).toBeHidden();

  await page.getByRole("button", { name: "Rotate journey" }).click();
  await expect(page.getByRole("dialog", { name: "Rotate journey?" })).toContainText("refused from the next request on");
  await expect(page.getByRole("dialog", { name: "Rotate journey?" })).toContainText("No call was made with it in the last 7 days.");
  await accessible(page);
  await page.getByRole("dialog").getByRole("button", { name: "Rotate" }).click();
  await expect(secret).toContainText(/loupe_sk_\w{30,}/);
  expect(await secret.locator("code").innerText()).not.toBe(text);
  await secret.getByRole("button", { name: "I have stored it" }).click();
  await secret.getByRole("button", { name: "Close without a copy" }).click();

  await page.getByRole("button", { name: "Revoke journey" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Revoke" }).click();
  await expect(page.getByRole("button", { name: "Revoke journey" })).toHaveCount(0);
  await page.getByLabel("Status", { exact: true }).selectOption("revoked");
  await expect(page).toHaveURL(/status=revoked/);
  await expect(page.getByRole("row", { name: /journey/ })).toContainText("revoked");
  await expect(page.getByRole("row", { name: /admin/ })).toHaveCount(0);
  expect(faults).toEqual([]);
});

test("a key in use is revoked only after its name is typed, and its use is drawn and told", async ({ page }) => {
  await signIn(page);
  await open(page, "API keys");
  await page.getByRole("button", { name: "Create key" }).first().click();
  const form = page.getByRole("dialog", { name: "Create an API key" });
  await form.getByLabel("Name", { exact: true }).fill("in-use");
  await form.getByRole("button", { name: "Create key" }).click();
  const secret = secretOf(page);
  await expect(secret).toContainText(/loupe_sk_\w{30,}/);
  const text = await secret.locator("code").innerText();
  await secret.getByRole("button", { name: "I have stored it" }).click();
  await secret.getByRole("button", { name: "Close without a copy" }).click();
  for (let n = 0; n < 3; n += 1) {
    const answer = await page.request.post(`${url()}/v1/namespaces/list`, { headers: { Authorization: `Bearer ${text}` }, data: {} });
    expect(answer.status()).toBe(200);
  }

  // Counts are written every few seconds.
  await expect(async () => {
    await page.reload();
    await expect(page.getByRole("row", { name: /in-use/ }).locator("td.num")).toHaveText("3", { timeout: 10_000 });
  }).toPass({ timeout: 120_000 });
  await expect(page.getByRole("row", { name: /in-use/ }).locator("td.num .spark rect")).toHaveCount(8);
  await page.getByRole("button", { name: "Rotate in-use" }).click();
  const rotate = page.getByRole("dialog", { name: "Rotate in-use?" });
  await expect(rotate.getByRole("listitem")).toContainText("POST /v1/namespaces/list 3 times");
  await rotate.getByRole("button", { name: "Create a second key instead" }).click();
  await expect(form).toBeVisible();
  await form.getByRole("button", { name: "Cancel" }).click();
  await page.getByRole("button", { name: "Usage in-use" }).click();
  const usage = page.getByRole("dialog", { name: "Usage of in-use" });
  await expect(usage.getByRole("img", { name: "Requests over time" })).toBeVisible();
  await expect(usage.getByRole("row", { name: /POST \/v1\/namespaces\/list/ })).toContainText("3");
  await usage.getByText("As a table").click();
  await expect(usage.getByRole("row", { name: /^\d\d-\d\d/ })).toHaveCount(7);
  await accessible(page);
  await phone(page, usage.getByRole("img"));
  await usage.getByRole("button", { name: "24 hours" }).click();
  await expect(usage.getByRole("row", { name: /POST \/v1\/namespaces\/list/ })).toContainText("3");
  await expect(usage.getByRole("link", { name: /in the audit log/ })).toHaveAttribute("href", /\/console\/audit\?resource=key_\w+$/);
  await page.keyboard.press("Escape");

  await page.getByRole("button", { name: "Revoke in-use" }).click();
  const question = page.getByRole("dialog", { name: "Revoke in-use?" });
  await question.getByRole("button", { name: "Revoke" }).click();
  await expect(question.getByRole("alert")).toContainText("It was used at");
  await accessible(page);
  await question.getByLabel(/^Type in-use/).fill("in");
  await question.getByRole("button", { name: "Revoke" }).click();
  await expect(question).toContainText("this is not its name");
  await question.getByLabel(/^Type in-use/).fill("in-use");
  await question.getByRole("button", { name: "Revoke" }).click();
  await expect(question).toBeHidden();
  const refused = await page.request.get(`${url()}/v1/me`, { headers: { Authorization: `Bearer ${text}` } });
  expect(refused.status()).toBe(401);
});

test("a user is added, given a key, and suspended with what that ends", async ({ page }) => {
  const faults = watch(page);
  await signIn(page);
  await open(page, "Users");
  await page.getByRole("button", { name: "Add user" }).first().click();
  await page.getByLabel("Name", { exact: true }).fill("Ann Example");
  await page.getByLabel("E-mail address").fill("ann@example.com");
  await page.getByLabel("Role", { exact: true }).last().selectOption("viewer");
  await accessible(page);
  await page.getByRole("dialog").getByRole("button", { name: "Add user" }).click();
  const row = page.getByRole("row", { name: /Ann Example/ });
  await expect(row).toContainText("viewer");
  await page.getByRole("button", { name: "Change Ann Example" }).click();
  await page.getByRole("dialog").getByLabel("Role").selectOption("member");
  await page.getByRole("dialog").getByRole("button", { name: "Save" }).click();
  await expect(row).toContainText("member");

  await page.getByRole("link", { name: "Keys of Ann Example" }).click();
  await expect(page.getByText("Keys of ann@example.com")).toBeVisible();
  await page.getByRole("button", { name: "Create key" }).first().click();
  await page.getByLabel("Name", { exact: true }).fill("ann-laptop");
  await page.getByRole("dialog").getByRole("button", { name: "Create key" }).click();
  await secretOf(page).getByRole("button", { name: "I have stored it" }).click();
  await secretOf(page).getByRole("button", { name: "Close without a copy" }).click();

  await open(page, "Users");
  await page.getByRole("button", { name: "Suspend Ann Example" }).click();
  const question = page.getByRole("dialog", { name: "Suspend Ann Example?" });
  await expect(question).toContainText("This key is revoked for good");
  await expect(question).toContainText("ann-laptop");
  await accessible(page);
  await question.getByRole("button", { name: "Confirm" }).click();
  await expect(row).toContainText("suspended");
  await page.getByLabel("Status", { exact: true }).selectOption("suspended");
  await expect(page.getByRole("main").locator("tbody tr")).toHaveCount(1);
  await phone(page);

  await page.getByRole("button", { name: "Remove Ann Example" }).click();
  const farewell = page.getByRole("dialog", { name: "Remove Ann Example?" });
  await farewell.getByLabel(/^Type ann@example.com/).fill("ann");
  await farewell.getByRole("button", { name: "Remove" }).click();
  await expect(farewell).toContainText("this is not the address");
  await farewell.getByLabel(/^Type ann@example.com/).fill("ann@example.com");
  await farewell.getByRole("button", { name: "Remove" }).click();
  await expect(farewell).toBeHidden();
  await expect(row).toHaveCount(0);
  expect(faults).toEqual([]);
});

test("the audit log is narrowed, opened and exported", async ({ page }) => {
  const faults = watch(page);
  const headers = { Authorization: `Bearer ${key()}` };
  const users = `${url()}/v1/organizations/users`;
  const added = await page.request.post(users, { headers, data: { email: "bob@example.com", user_name: "Bob", role: "viewer" } });
  expect(added.ok()).toBe(true);
  const changed = await page.request.patch(`${users}/bob@example.com`, { headers, data: { role: "member" } });
  expect(changed.ok()).toBe(true);
  await signIn(page);
  await open(page, "Audit log");
  const rows = page.getByRole("main").locator("tbody tr");
  await page.getByLabel("Action", { exact: true }).selectOption("bucket_created");
  await expect(page).toHaveURL(/action=bucket_created/);
  await expect(rows.first()).toContainText("bucket created");
  await expect(page.getByText("retriever created")).toHaveCount(1); // only the choice of the filter
  await page.getByLabel("Action", { exact: true }).selectOption("user_updated");
  await page.getByLabel("Within").selectOption("hour");
  await expect(page).toHaveURL(/hour/);
  await fetched(page);
  await expect(rows.first()).toContainText("user updated");
  await rows.first().getByRole("button").click();
  const record = page.getByRole("dialog", { name: "Audit record" });
  await expect(record.getByRole("row", { name: /role/ })).toContainText(/viewer.*member/);
  await accessible(page);
  await phone(page, record.getByRole("row", { name: /role/ }));
  await page.keyboard.press("Escape");
  const saved = page.waitForEvent("download");
  await page.getByRole("button", { name: "Export NDJSON" }).click();
  const lines = readFileSync(await (await saved).path(), "utf8").trim().split("\n");
  expect(lines.map((line) => (JSON.parse(line) as { action: string }).action)).toContain("user_updated");
  const table = page.waitForEvent("download");
  await page.getByRole("button", { name: "Export CSV" }).click();
  const [head, first] = readFileSync(await (await table).path(), "utf8").split("\r\n");
  expect(head).toMatch(/^timestamp,action,status,/);
  expect(first).toMatch(/^"[^"]+","user_updated","success",/);
  const reads = page.getByLabel("Record reads, too");
  await reads.check();
  await expect(page.getByText("Reads are recorded from now on")).toBeVisible();
  await reads.uncheck();
  await expect(page.getByText("Reads are not recorded any more")).toBeVisible();
  await page.getByLabel("Id of the resource").fill("nothing-has-this-id");
  await page.getByLabel("Id of the resource").press("Enter");
  await expect(page.getByRole("heading", { name: "Nothing was recorded" })).toBeVisible();
  expect(faults).toEqual([]);
});

test("the organization shows its plan, its quotas and its use, and can be renamed", async ({ page }) => {
  const faults = watch(page);
  await signIn(page);
  await open(page, "Plan and usage");
  await expect(page.getByText("enterprise")).toBeVisible();
  await expect(page.locator("li.meter", { hasText: "Documents" })).toContainText(/\d/);
  await expect(page.getByRole("img", { name: "Requests by key" })).toBeVisible();
  await page.getByText("As a table").click();
  await expect(page.getByRole("row", { name: /^admin/ })).toBeVisible();
  await page.getByRole("button", { name: "Change the settings" }).click();
  await page.getByLabel("Name", { exact: true }).fill("Journeys Ltd");
  await accessible(page);
  await page.getByRole("button", { name: "Save" }).click();
  await expect(page.getByRole("banner").getByText("Journeys Ltd")).toBeVisible();
  await phone(page);
  expect(faults).toEqual([]);
});

test("stages are added, moved by keyboard, edited as JSON, and saved as another retriever", async ({ page }) => {
  const faults = watch(page);
  await signIn(page);
  await page.getByRole("main").getByRole("link", { name: "demo", exact: true }).click();
  await open(page, "Retrievers");
  await page.getByRole("link", { name: "picture-book-search" }).click();
  await page.getByRole("link", { name: "Change the stages" }).click();
  await expect(page.getByRole("heading", { level: 1, name: "Change the stages" })).toBeVisible();
  const stages = page.getByRole("main").locator("li.stage");
  await expect(stages.first()).toBeVisible();
  const before = await stages.count();
  expect(before).toBeGreaterThan(0);
  await accessible(page);

  for (const [kind, count] of [["sort_attribute", 1], ["limit", 2]] as const) {
    await page.getByLabel("Stage to add").selectOption(kind);
    await page.getByRole("button", { name: "Add stage" }).click();
    await expect(stages).toHaveCount(before + count);
  }
  const limit = page.getByRole("region", { name: "limit" }).getByLabel("limit", { exact: true });
  await limit.fill("3");
  // By keyboard: above the sort, and back below it by the button.
  await stages.last().getByRole("button").first().focus();
  await page.keyboard.press("Alt+ArrowUp");
  await expect(stages.nth(before)).toContainText("limit");
  await page.getByRole("button", { name: "Move limit down" }).click();
  await expect(stages.last()).toContainText("limit");
  await page.getByRole("button", { name: /sort_attribute/ }).first().click();
  await page.getByRole("button", { name: "Take sort_attribute out" }).click();
  await expect(stages).toHaveCount(before + 1);
  await accessible(page);
  await phone(page);

  await page.getByRole("button", { name: "Edit as JSON" }).click();
  const json = page.getByLabel("Stages (JSON)");
  await expect(json).toHaveValue(/"limit": 3/);
  await json.fill((await json.inputValue()).replace('"limit": 3', '"limit": 2'));
  await page.getByRole("button", { name: "Edit as JSON" }).click();
  await stages.last().getByRole("button").first().click();
  await expect(limit).toHaveValue("2");
  await page.getByRole("button", { name: "Save as a new retriever" }).click();
  const dialog = page.getByRole("dialog", { name: "Save as a new retriever" });
  await expect(dialog).toContainText("1 stage is changed.");
  await dialog.getByRole("button", { name: "Save", exact: true }).click();
  await expect(page.getByRole("heading", { level: 1, name: "picture-book-search-v2" })).toBeVisible();
  await page.getByLabel(/^query/).fill("a bird");
  await page.getByRole("button", { name: "Run" }).click();
  await expect(page.getByRole("tabpanel").getByRole("article")).toHaveCount(2);

  const namespace = /\/ns\/([^/]+)\//.exec(page.url())?.[1] ?? "";
  const id = page.url().split("/").pop() ?? "";
  const gone = await page.request.delete(`${url()}/v1/retrievers/${id}`, {
    headers: { Authorization: `Bearer ${key()}`, "X-Namespace": namespace },
  });
  expect(gone.ok()).toBe(true);
  expect(faults).toEqual([]);
});
