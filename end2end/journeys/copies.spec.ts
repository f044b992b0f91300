import { readFile } from "node:fs/promises";
import { expect, type Page } from "@playwright/test";
import { accessible, inDemo, phone, picture, send, steady, test, watch } from "./help.ts";

const namespaces = async (page: Page): Promise<{ namespace_id: string; namespace_name: string }[]> =>
  (await send(page, "POST", "/v1/namespaces/list", {})).results as { namespace_id: string; namespace_name: string }[];

test("a part of a namespace is migrated into a new one: checked before, watched, looked into", async ({ page }) => {
  const faults = watch(page);
  try {
    await inDemo(page, "Migrations");
    await expect(page.getByRole("heading", { name: "No migration here" })).toBeVisible();
    await accessible(page);
    await picture(page, "migrations-empty");
    await page.getByRole("button", { name: "Migrate" }).first().click();
    const form = page.getByRole("dialog", { name: "Migrate into a new namespace" });
    const checked = form.getByRole("status");
    const name = form.getByLabel("Name of the new namespace");
    await expect(checked).toContainText("Once the new namespace has a name");
    // What stands against it is told before anything is sent.
    await name.fill("demo");
    await expect(checked).toContainText("exists already");
    await name.fill("demo-migrated");
    await expect(checked).not.toContainText("exists already");
    await form.getByLabel("Takes along").selectOption("some");
    await expect(form.getByLabel("Takes along")).toBeFocused();
    await expect(checked).not.toContainText("collection");
    await form.getByRole("group", { name: "Collections" }).getByRole("checkbox").first().check();
    await expect(checked).toContainText(/1 collection.*\d+ documents, about \d+ (s|min)/);
    await form.getByRole("checkbox", { name: "Start it at once" }).uncheck();
    await accessible(page);
    await picture(page, "migration-form");
    await phone(page);
    await form.getByRole("button", { name: "Migrate", exact: true }).click();

    const row = page.getByRole("row", { name: /^demo-migrated/ });
    await expect(row).toContainText("draft");
    await expect(row).toContainText("1 collection");
    await row.getByRole("button", { name: "Start demo-migrated" }).click();
    await expect(row).toContainText("completed", { timeout: 120_000 });
    await expect(row).toContainText("1 of 1");
    await accessible(page);
    await steady(page);
    await picture(page, "migrations");
    await phone(page);
    await row.getByRole("button", { name: "Details demo-migrated" }).click();
    const details = page.getByRole("dialog", { name: "Migration into demo-migrated" });
    await expect(details.locator("tbody tr")).toContainText("100 %");
    await accessible(page);
    await picture(page, "migration");
    await phone(page);
    await page.keyboard.press("Escape");

    await row.getByRole("link", { name: "demo-migrated" }).click();
    await expect(page.getByRole("heading", { level: 1, name: "Collections" })).toBeVisible();
    await expect(page.getByRole("main").locator("tbody tr")).toHaveCount(1);
    await page.goBack();
    await page.getByLabel("Status", { exact: true }).selectOption("failed");
    await expect(page.getByRole("heading", { name: "Nothing matches" })).toBeVisible();
    await page.getByLabel("Status", { exact: true }).selectOption("");
    await row.getByRole("button", { name: "Remove demo-migrated" }).click();
    await page.getByRole("dialog", { name: /^Remove mig_/ }).getByRole("button", { name: "Remove" }).click();
    await expect(page.getByRole("heading", { name: "No migration here" })).toBeVisible();
    expect(faults).toEqual([]);
  } finally {
    for (const one of await namespaces(page)) {
      if (one.namespace_name === "demo-migrated") await send(page, "DELETE", `/v1/namespaces/${one.namespace_id}`);
    }
    await expect.poll(async () => (await namespaces(page)).filter((one) => one.namespace_name === "demo-migrated").length).toBe(0);
  }
});

test("documents are exported into a file, and a collection is cloned with its documents", async ({ page }) => {
  const faults = watch(page);
  const namespace = await inDemo(page, "Collections");
  try {
    await page.getByRole("main").locator("tbody").getByRole("link").first().click();
    await page.getByRole("navigation", { name: "Parts of the collection" }).getByRole("link", { name: "Exports" }).click();
    await expect(page.getByRole("heading", { name: "No export of the last day" })).toBeVisible();
    await accessible(page);
    await page.getByRole("button", { name: "Export", exact: true }).first().click();
    const form = page.getByRole("dialog", { name: "Export the documents" });
    await form.getByLabel("Format").selectOption("csv");
    const most = form.getByLabel("So many documents at most");
    await most.fill("0");
    await form.getByRole("button", { name: "Export", exact: true }).click();
    // What is refused stands beside its field, and leads there.
    await expect(most).toHaveAttribute("aria-invalid", "true");
    await expect(most).toHaveAccessibleDescription(/greater than or equal to 1/);
    await expect(most).toBeFocused();
    await accessible(page);
    await picture(page, "export-form");
    await phone(page);
    await most.fill("20");
    await form.getByRole("button", { name: "Export", exact: true }).click();
    const row = page.getByRole("row", { name: /^CSV/ });
    await expect(row).toContainText("completed", { timeout: 120_000 });
    await expect(row.getByRole("cell", { name: "20", exact: true })).toBeVisible();
    await accessible(page);
    await steady(page);
    await picture(page, "exports");
    await phone(page);
    const saved = page.waitForEvent("download");
    await row.getByRole("link", { name: "Download" }).click();
    const file = await saved;
    expect(file.suggestedFilename()).toMatch(/\.csv$/);
    expect((await readFile(await file.path(), "utf8")).split("\n").length).toBeGreaterThan(20);

    await page.getByRole("button", { name: "Clone", exact: true }).click();
    const clone = page.getByRole("dialog", { name: "Clone the collection" });
    await clone.getByLabel("Name of the clone").fill("cloned-pictures");
    await expect(clone.getByRole("status")).toHaveText("The documents are copied with their vectors, by a task.");
    await expect(clone.getByRole("group", { name: "Reads the buckets" }).getByRole("checkbox").first()).toBeChecked();
    await accessible(page);
    await picture(page, "collection-clone");
    await phone(page);
    await clone.getByRole("button", { name: "Clone", exact: true }).click();
    await expect(page.getByRole("heading", { level: 1, name: "cloned-pictures" })).toBeVisible();
    await expect(async () => {
      await page.reload();
      await expect(page.getByRole("main")).toContainText(/[1-9]\d* documents, made by/, { timeout: 10_000 });
    }).toPass({ timeout: 120_000 });
    // The browser itself logs each refusal of the server.
    expect(faults.filter((fault) => !fault.includes("422"))).toEqual([]);
  } finally {
    const all = (await send(page, "POST", "/v1/collections/list", {}, namespace)).results as { collection_id: string; collection_name: string }[];
    for (const one of all) {
      if (one.collection_name === "cloned-pictures") await send(page, "DELETE", `/v1/collections/${one.collection_id}`, undefined, namespace);
    }
  }
});
