import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect } from "@playwright/test";
import { accessible, add, inDemo, phone, picture, send, steady, test, watch } from "./help.ts";

/** A small S3 with one bucket, `media`: files by their keys. While it is down, it answers with 500. */
async function storage(files: Map<string, string>): Promise<{ url: string; down: boolean; close(): void }> {
  const one = { url: "", down: false, close: () => {} };
  const server = createServer((request, response) => {
    const asked = new URL(request.url ?? "/", "http://storage");
    if (one.down) return response.writeHead(500).end("<Error><Code>InternalError</Code></Error>");
    if (/^\/media\/?$/.test(asked.pathname)) {
      const prefix = asked.searchParams.get("prefix") ?? "";
      const found = [...files].filter(([key]) => key.startsWith(prefix)).sort();
      const entries = found.map(
        ([key, text]) =>
          `<Contents><Key>${key}</Key><LastModified>2026-11-21T10:00:00.000Z</LastModified><ETag>&quot;${text.length}&quot;</ETag><Size>${text.length}</Size></Contents>`,
      );
      return response.end(`<ListBucketResult><Name>media</Name><IsTruncated>false</IsTruncated>${entries.join("")}</ListBucketResult>`);
    }
    const text = files.get(decodeURIComponent(asked.pathname.replace("/media/", "")));
    if (text === undefined) return response.writeHead(404).end("<Error><Code>NoSuchKey</Code></Error>");
    const headers = { "content-type": "text/plain", "content-length": text.length, etag: `"${text.length}"`, "last-modified": "Sat, 21 Nov 2026 10:00:00 GMT" };
    return response.writeHead(200, headers).end(text);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.2", resolve));
  one.url = `http://127.0.0.2:${(server.address() as AddressInfo).port}`;
  one.close = () => void server.close();
  return one;
}

test("a bucket follows a storage: looks, their log, a pause, a change and an end", async ({ page }) => {
  const faults = watch(page);
  const files = new Map([
    ["letters/1912-may.txt", "A letter of May."],
    ["letters/1913-june.txt", "A letter of June, from the sea."],
    ["letters/notes.csv", "not,a,letter"],
  ]);
  const s3 = await storage(files);
  try {
    const namespace = await inDemo(page, "Buckets");
    const connection = await send(page, "POST", "/v1/organizations/connections", {
      name: "attic", provider_type: "s3", test_before_save: false,
      provider_config: { endpoint_url: s3.url, credentials: { type: "access_key", access_key_id: "AKIAEXAMPLE", secret_access_key: "s" } },
    });
    const bucket = await send(page, "POST", "/v1/buckets", {
      bucket_name: "letters", bucket_schema: { properties: { content: { type: "text" }, year: { type: "integer" } } },
    }, namespace);
    await page.reload();
    await page.getByRole("main").getByRole("link", { name: "letters", exact: true }).click();
    const parts = page.getByRole("navigation", { name: "Parts of the bucket" });
    await parts.getByRole("link", { name: "Syncs" }).click();
    await expect(page.getByRole("heading", { name: "This bucket follows no storage" })).toBeVisible();
    await accessible(page);

    await page.getByRole("button", { name: "Follow a storage" }).first().click();
    const form = page.getByRole("dialog", { name: "Follow a storage" });
    await form.getByLabel("Connection").selectOption({ label: "attic" });
    await form.getByLabel("Folder", { exact: true }).fill("s3://media/letters");
    await form.getByLabel("Description").fill("The family's letters");
    await form.getByLabel("Seconds from one look to the next").fill("7200");
    await form.getByLabel("Only these").fill("*.txt");
    await add(form, "Add a member of the object");
    await form.getByLabel("Member", { exact: true }).fill("year");
    await form.getByLabel("Pattern").fill("([0-9]{4})");
    await form.getByLabel("Made").selectOption("integer");
    // Other kinds of members have other fields.
    await form.getByLabel("Is", { exact: true }).selectOption("folder_path");
    await expect(form.getByLabel("Pattern")).toHaveCount(0);
    await form.getByLabel("Is", { exact: true }).selectOption("filename_regex");
    await expect(form.getByLabel("Pattern")).toHaveValue("([0-9]{4})");
    await accessible(page);
    await picture(page, "sync-form");
    await phone(page);
    await form.getByRole("button", { name: "Create", exact: true }).click();

    const row = page.getByRole("row", { name: /s3:\/\/media\/letters/ });
    await expect(row).toContainText("every 2 h");
    await expect(row).toContainText("The family's letters");
    await expect(row).toContainText("next in");
    await expect(row.getByRole("cell").nth(2)).toHaveText("2");
    await parts.getByRole("link", { name: "Objects" }).click();
    await expect(page.getByRole("row", { name: /1913-june/ })).toBeVisible();
    const objects = (await send(page, "POST", `/v1/buckets/${bucket.bucket_id}/objects/list`, {}, namespace)).results as { year?: number }[];
    expect(objects.map((one) => one.year).sort()).toEqual([1912, 1913]);
    await parts.getByRole("link", { name: "Syncs" }).click();

    files.set("letters/1914-july.txt", "A letter of July.");
    await row.getByRole("button", { name: "Look now" }).click();
    await expect(row.getByRole("cell").nth(2)).toHaveText("3");
    await row.getByRole("button", { name: /^Log/ }).click();
    const log = page.getByRole("dialog", { name: "Looks into s3://media/letters" });
    await expect(log.locator("tbody tr")).toHaveCount(2);
    // What was found, taken over, unchanged, removed and failed.
    await expect(log.locator("tbody tr").first().getByRole("cell").filter({ hasText: /^\d+$/ })).toHaveText(["3", "1", "2", "0", "0"]);
    await accessible(page);
    await picture(page, "sync-log");
    await phone(page);
    await log.getByLabel("Outcome").selectOption("failed");
    await expect(log.getByRole("heading", { name: "It has not looked yet" })).toBeVisible();
    await page.keyboard.press("Escape");
    await expect(page).not.toHaveURL(/log=/);

    s3.down = true;
    await row.getByRole("button", { name: "Look now" }).click();
    await expect(row).toContainText("failing", { timeout: 120_000 });
    await steady(page);
    await accessible(page);
    await picture(page, "syncs");
    await phone(page);
    s3.down = false;
    await row.getByRole("button", { name: /^Pause/ }).click();
    await expect(row).toContainText("paused");
    await row.getByRole("button", { name: /^Resume/ }).click();
    await expect(row).toContainText("active");

    await row.getByRole("button", { name: /^Change/ }).click();
    const change = page.getByRole("dialog", { name: "Change s3://media/letters" });
    await expect(change.getByLabel("Connection")).toHaveCount(0);
    await expect(change.getByLabel("Pattern")).toHaveValue("([0-9]{4})");
    await change.getByLabel("Seconds from one look to the next").fill("3600");
    await change.getByRole("button", { name: "Save" }).click();
    await expect(row).toContainText("every 1 h");
    await row.getByRole("button", { name: /^Remove/ }).click();
    const question = page.getByRole("dialog", { name: "Remove s3://media/letters?" });
    await expect(question).toContainText("Objects that came from it stay");
    await question.getByRole("button", { name: "Remove" }).click();
    await expect(page.getByRole("heading", { name: "This bucket follows no storage" })).toBeVisible();
    await send(page, "DELETE", `/v1/buckets/${bucket.bucket_id}`, undefined, namespace);
    await send(page, "DELETE", `/v1/organizations/connections/${connection.connection_id}`);
    expect(faults).toEqual([]);
  } finally {
    s3.close();
  }
});
