import { expect } from "@playwright/test";
import { decode, encode, RECURSION_AVAILABLE, RECURSION_DESIRED } from "dns-packet";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { call, type Owner, serve, visit } from "../apps.ts";
import { accessible, key, log, open, phone, picture, resolver, signIn, steady, test, url, watch } from "./help.ts";

const server = (): Owner => ({ url: url(), key: key(), log: log() });

test("a domain of one's own is noted, proven by a record, served and removed", async ({ page }) => {
  // The name server that the journeys' server asks: it knows one TXT record.
  let record = "";
  const names = createSocket("udp4");
  names.on("message", (packet, from) => {
    const asked = decode(packet);
    const answers = record ? [{ type: "TXT" as const, name: asked.questions?.[0].name ?? "", ttl: 1, data: record }] : [];
    names.send(encode({ type: "response", id: asked.id, flags: RECURSION_DESIRED | RECURSION_AVAILABLE, questions: asked.questions, answers }), from.port, from.address);
  });
  names.bind(resolver(), "127.0.0.1");
  await once(names, "listening");

  const app = await serve(server(), "night-sky", { "index.html": '<!doctype html><html lang="en"><title>Night sky</title><h1>Stars</h1></html>' });

  const faults = watch(page);
  await signIn(page);
  await open(page, "Apps");
  await page.getByRole("link", { name: "night-sky", exact: true }).click();
  await page.getByRole("link", { name: "Domains" }).click();
  await expect(page.getByRole("heading", { name: "No domain of your own" })).toBeVisible();
  await accessible(page);
  await phone(page);
  await page.getByRole("button", { name: "Add a domain" }).click();
  const form = page.getByRole("dialog", { name: "Add a domain" });
  await form.getByLabel("Domain").fill("not a name");
  await form.getByRole("button", { name: "Add", exact: true }).click();
  await expect(form.getByRole("alert")).toContainText("www.example.com");
  await accessible(page);
  faults.length = 0; // The refusal is an answer of 422, which the browser notes.
  await form.getByLabel("Domain").fill("sky.example.com");
  await form.getByLabel("The app's first address").check();
  await picture(page, "app-domain-form");
  await form.getByLabel("The app's first address").uncheck();
  await form.getByRole("button", { name: "Add", exact: true }).click();

  const row = page.getByRole("row", { name: /sky\.example\.com/ });
  await expect(row).toContainText("pending");
  await expect(row).toContainText("_loupe-verify.sky.example.com");
  await expect(row).toContainText("night-sky.localhost");
  await accessible(page);
  await steady(page);
  await picture(page, "app-domains");
  await phone(page);
  await row.getByRole("button", { name: "Verify sky.example.com" }).click();
  await expect(page.getByText("The TXT record is not there yet.")).toBeVisible();
  await expect(row).toContainText("pending");

  record = (await row.getByText(/^loupe-domain-/).textContent()) ?? "";
  const home = `http://sky.example.com:${new URL(server().url).port}`;
  expect((await visit(home)).text).not.toContain("Stars");
  await row.getByRole("button", { name: "Verify sky.example.com" }).click();
  await expect(row).toContainText("active");
  await expect.poll(async () => (await visit(home)).text).toContain("Stars");
  await accessible(page);
  const first = row.getByRole("button", { name: "Make it the first address sky.example.com" });
  await first.click();
  await expect(first).toHaveCount(0);
  await expect(row).toContainText("first address");
  await page.reload();
  await expect(page.getByRole("link", { name: "Open", exact: true })).toHaveAttribute("href", home);

  await row.getByRole("button", { name: "Remove sky.example.com" }).click();
  await page.getByRole("dialog", { name: "Remove sky.example.com?" }).getByRole("button", { name: "Remove" }).click();
  await expect(page.getByRole("heading", { name: "No domain of your own" })).toBeVisible();
  await expect.poll(async () => (await visit(home)).text).not.toContain("Stars");
  names.close();
  await call(server(), "DELETE", `/v1/apps/${app}`);
  expect(faults).toEqual([]);
});
