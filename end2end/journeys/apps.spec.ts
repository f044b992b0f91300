import { expect } from "@playwright/test";
import { readFileSync } from "node:fs";
import { PASSWORD, linkTo, origin, type Owner, visit } from "../apps.ts";
import { accessible, add, key, log, noSideways, open, phone, picture, signIn, steady, test, url, watch } from "./help.ts";

const server = (): Owner => ({ url: url(), key: key(), log: log() });

test("an app is made, the starter is deployed, and a stranger signs up and searches on its own origin", async ({ page, browser }) => {
  const faults = watch(page);
  await signIn(page);
  await page.getByRole("main").getByRole("link", { name: "demo", exact: true }).click();
  await open(page, "Apps");
  await expect(page.getByRole("heading", { name: "No app yet" })).toBeVisible();
  await accessible(page);
  await page.getByRole("button", { name: "Create app" }).first().click();
  const form = page.getByRole("dialog", { name: "Create an app" });
  await form.getByLabel("Name", { exact: true }).fill("Reading room");
  await form.getByLabel("Address").fill("Not an address");
  await form.getByLabel("Namespace").selectOption({ label: "demo" });
  await form.getByRole("button", { name: "Create", exact: true }).click();
  await expect(form.getByRole("alert")).toBeVisible();
  await accessible(page);
  await picture(page, "app-form");
  faults.length = 0; // The refusal is an answer of 422, which the browser notes.
  await form.getByLabel("Address").fill("reading-room");
  await form.getByRole("button", { name: "Create", exact: true }).click();

  await expect(page.getByRole("heading", { level: 1, name: "Reading room" })).toBeVisible();
  await expect(page.getByRole("heading", { name: "Nothing deployed yet" })).toBeVisible();
  await accessible(page);
  await picture(page, "app-empty");
  await phone(page);
  await page.getByRole("button", { name: "Deploy the starter" }).click();
  await expect(page.getByLabel("Log of the deploy")).toContainText("version 1 is live in production");
  const row = page.getByRole("row", { name: /Version 1/ });
  await expect(row).toContainText("the starter");
  await expect(row).toContainText("production");
  await accessible(page);
  await picture(page, "app-versions");
  await phone(page);

  // A stranger, in another browser.
  const home = origin(server(), "reading-room");
  await expect(page.getByRole("link", { name: "Open the app" })).toHaveAttribute("href", home);
  const stranger = await browser.newContext();
  const visit = await stranger.newPage();
  const theirs = watch(visit);
  await visit.goto(home);
  await expect(visit).toHaveTitle("Reading room");
  await expect(visit.getByRole("status")).toHaveText("Sign in to search.");
  await accessible(visit);
  await noSideways(visit);
  await visit.getByRole("button", { name: "Make an account" }).click();
  await expect(visit.getByLabel("E-mail")).toBeVisible();
  await accessible(visit);
  await visit.getByLabel("E-mail").fill("ada@example.com");
  await visit.getByLabel("Name").fill("Ada");
  await visit.getByLabel("Password").fill(PASSWORD);
  await visit.getByRole("button", { name: "Make an account" }).click();
  await visit.goto(await linkTo(server(), "ada@example.com"));
  await visit.getByRole("button", { name: "Confirm and sign in" }).click();
  await visit.getByLabel("Words").fill("striped animal");
  await visit.getByRole("button", { name: "Search" }).click();
  await expect(visit.getByRole("listitem").first()).toBeVisible();
  await expect(visit.getByRole("status")).toHaveText(/\d+ results/);
  const image = visit.getByRole("listitem").locator("img").first();
  await expect.poll(() => image.evaluate((one: HTMLImageElement) => one.complete && one.naturalWidth > 0)).toBe(true);
  await accessible(visit);
  await visit.getByRole("button", { name: "Account of Ada" }).click();
  await expect(visit.getByText("ada@example.com")).toBeVisible();
  expect(theirs).toEqual([]);

  // The owner sees who came, gives a role, asks somebody to come, and takes it back.
  await page.getByRole("link", { name: "People" }).click();
  const ada = page.getByRole("row", { name: /ada@example.com/ });
  await expect(ada).toContainText("Ada");
  await ada.getByRole("button", { name: "Role ada@example.com" }).click();
  const role = page.getByRole("dialog", { name: "Role of ada@example.com" });
  await role.getByLabel("Role").fill("editor");
  await role.getByRole("button", { name: "Save" }).click();
  await expect(ada).toContainText("editor");
  await page.getByRole("button", { name: "Invite" }).click();
  const invite = page.getByRole("dialog", { name: "Invite somebody" });
  await invite.getByLabel("E-mail address").fill("eve@example.com");
  await accessible(page);
  await invite.getByRole("button", { name: "Invite" }).click();
  await expect(page.getByRole("row", { name: /eve@example.com/ })).toContainText("invited");
  await accessible(page);
  await steady(page);
  await picture(page, "app-people");
  await phone(page);
  for (const person of ["eve@example.com", "ada@example.com"]) {
    await page.getByRole("button", { name: `Remove ${person}` }).click();
    await page.getByRole("dialog", { name: `Remove ${person}?` }).getByRole("button", { name: "Remove" }).click();
    await expect(page.getByRole("row", { name: new RegExp(person) })).toHaveCount(0);
  }
  await expect(page.getByRole("heading", { name: "Nobody yet" })).toBeVisible();
  // Whoever was removed is signed out where they are.
  await visit.reload();
  await expect(visit.getByRole("status")).toHaveText("Sign in to search.");
  await stranger.close();

  // What visitors may call, and how they sign in.
  await page.getByRole("link", { name: "Sign-in and API" }).click();
  await expect(page.getByText("reading and searching: retrievers, collections and documents")).toBeVisible();
  await page.getByRole("button", { name: "Test the sign-in" }).click();
  await expect(page.getByRole("status", { name: "What the test found" })).toContainText("links are shown in its log only");
  await accessible(page);
  await page.getByRole("button", { name: "Change", exact: true }).click();
  const change = page.getByRole("dialog", { name: "Sign-in and API" });
  await add(change, "Add a rule");
  await change.getByLabel("Path").fill("/retrievers/*/execute");
  await change.getByLabel("Visitors may list each other").selectOption("off");
  await accessible(page);
  await picture(page, "app-access-form");
  await phone(page);
  await change.getByRole("button", { name: "Save" }).click();
  await expect(page.getByRole("main").getByText("/retrievers/*/execute")).toBeVisible();
  await accessible(page);
  await steady(page);
  await picture(page, "app-access");
  await phone(page);
  // A service that does not answer is told before anybody meets it.
  await page.getByRole("button", { name: "Change", exact: true }).click();
  await change.getByLabel("Who may come in").selectOption("sso_oidc");
  await change.getByLabel("Issuer").fill("http://127.0.0.2:4010");
  await change.getByLabel("Client id").fill("club");
  await change.getByLabel("Client secret").fill("between us");
  await change.getByRole("button", { name: "Save" }).click();
  await expect(page.getByRole("main").getByText(`${home}/_auth/callback/oidc`)).toBeVisible();
  await page.getByRole("button", { name: "Test the sign-in" }).click();
  await expect(page.getByRole("status", { name: "What the test found" })).toContainText("failed");
  // It may stand beside other ways, too.
  await page.getByRole("button", { name: "Change", exact: true }).click();
  await change.getByLabel("Who may come in").selectOption("clerk");
  await expect(change.getByLabel("Issuer")).toHaveCount(0);
  await change.getByLabel("E-mail", { exact: true }).check();
  await change.getByLabel("Your own service", { exact: true }).check();
  await expect(change.getByLabel("Issuer")).toHaveValue("http://127.0.0.2:4010");
  await accessible(page);
  await change.getByRole("button", { name: "Save" }).click();
  await expect(page.getByText("people who sign in with e-mail and password, single sign-on").first()).toBeVisible();
  expect(faults).toEqual([]);
});

test("a bundle is uploaded, looked at in staging, promoted and taken back, and the app is deleted by its name", async ({ page }) => {
  const faults = watch(page);
  await signIn(page);
  await open(page, "Apps");
  await page.getByRole("button", { name: "Create app" }).first().click();
  const form = page.getByRole("dialog", { name: "Create an app" });
  await form.getByLabel("Name", { exact: true }).fill("Shop window");
  await form.getByLabel("Address").fill("shop-window");
  await form.getByLabel("Who may come in").selectOption("public");
  await form.getByRole("button", { name: "Create", exact: true }).click();
  await expect(page.getByRole("heading", { level: 1, name: "Shop window" })).toBeVisible();
  const home = origin(server(), "shop-window");
  const bundle = (heading: string) => ({ name: "dist.zip", mimeType: "application/zip", buffer: zip({ "index.html": `<!doctype html><html lang="en"><title>Shop</title><h1>${heading}</h1></html>` }) });

  const deployed = page.getByLabel("Log of the deploy");
  await page.locator("#files").setInputFiles(bundle("Spring"));
  await expect(deployed).toContainText("version 1 is live in production");
  // There is nothing to go back to yet.
  await expect(page.getByRole("button", { name: "Roll back Shop window" })).toHaveCount(0);
  await page.getByLabel("A deploy goes to").selectOption("staging");
  await page.locator("#files").setInputFiles(bundle("Summer"));
  await expect(deployed).toContainText("version 2 is live in staging");
  const staging = home.replace("shop-window", "shop-window--staging");
  await expect(page.getByRole("main").getByRole("link", { name: "Open staging" })).toHaveCount(2);
  for (const link of await page.getByRole("main").getByRole("link", { name: "Open staging" }).all()) await expect(link).toHaveAttribute("href", staging);
  const heading = async (address: string): Promise<string> => (await visit(address)).text.match(/<h1>(.*?)<\/h1>/)?.[1] ?? "";
  await expect.poll(async () => [await heading(home), await heading(staging)]).toEqual(["Spring", "Summer"]);
  const preview = (await page.getByRole("link", { name: "Preview Version 2" }).getAttribute("href")) ?? "";
  await expect.poll(() => heading(preview)).toBe("Summer");

  await page.getByRole("button", { name: "Promote staging Shop window" }).click();
  await expect(page.getByRole("row", { name: /Version 2/ })).toContainText("production");
  await expect.poll(() => heading(home)).toBe("Summer");
  await accessible(page);
  await steady(page);
  await phone(page);
  await page.getByRole("button", { name: "Roll back Shop window" }).click();
  await expect.poll(() => heading(home)).toBe("Spring");
  await page.getByRole("button", { name: "Serve Version 2" }).click();
  await expect.poll(() => heading(home)).toBe("Summer");
  await page.getByRole("button", { name: "Changes Version 2" }).click();
  const changes = page.getByRole("dialog", { name: "Changes of Version 2" });
  await expect(changes.getByLabel("Since")).toHaveValue("1");
  await changes.getByText("index.html").click();
  await expect(changes.locator("del")).toContainText("Spring");
  await expect(changes.locator("ins")).toContainText("Summer");
  await accessible(page);
  await picture(page, "app-changes");
  await page.keyboard.press("Escape");
  const download = page.waitForEvent("download");
  await page.getByRole("button", { name: "Download Version 1" }).click();
  expect(readFileSync(await (await download).path()).subarray(0, 2).toString()).toBe("PK");

  // What is no bundle says why.
  await page.locator("#files").setInputFiles({ name: "notes.zip", mimeType: "application/zip", buffer: Buffer.from("no archive") });
  await expect(page.getByRole("main").getByRole("alert")).toContainText(/archive|zip/i);
  await accessible(page);
  await picture(page, "app-failed");
  // Nor is it forgotten, whatever page comes in between.
  await page.getByRole("link", { name: "Log", exact: true }).click();
  const failed = page.getByRole("row", { name: /notes\.zip/ });
  await expect(failed).toContainText("failed");
  await failed.getByText("Log", { exact: true }).click();
  await expect(failed).toContainText(/failed: .*(archive|zip)/i);
  await accessible(page);
  // No page of it told anything.
  await page.getByLabel("Kind of lines").selectOption("interactions");
  await expect(page.getByRole("heading", { name: "Nothing in a week" })).toBeVisible();

  await page.getByRole("button", { name: "Settings" }).click();
  const settings = page.getByRole("dialog", { name: "Settings" });
  // The form begins with the namespace that the app works in.
  await expect(settings.getByLabel("Namespace")).not.toHaveValue("");
  await settings.getByLabel("Name", { exact: true }).fill("Corner shop");
  await settings.getByLabel("Visitors reach it").uncheck();
  await settings.getByRole("button", { name: "Save" }).click();
  await expect(page.getByRole("heading", { level: 1, name: "Corner shop" })).toBeVisible();
  await expect.poll(async () => (await visit(home)).status).toBe(404);

  await page.getByRole("button", { name: "Delete" }).click();
  const remove = page.getByRole("dialog", { name: "Delete this app?" });
  await remove.getByLabel(/Type shop-window/).fill("corner-shop");
  await remove.getByRole("button", { name: "Delete" }).click();
  await expect(remove.getByRole("alert")).toContainText("this is not its name");
  await accessible(page);
  await remove.getByLabel(/Type shop-window/).fill("shop-window");
  await remove.getByRole("button", { name: "Delete" }).click();
  await expect(page.getByRole("heading", { level: 1, name: "Apps" })).toBeVisible();
  await expect(page.getByRole("link", { name: "Corner shop" })).toHaveCount(0);
  expect(faults).toEqual([]);
});

/** An archive without compression, which needs no library. */
function zip(files: Record<string, string>): Buffer {
  const parts: Buffer[] = [];
  const central: Buffer[] = [];
  let at = 0;
  for (const [name, text] of Object.entries(files)) {
    const [path, bytes] = [Buffer.from(name), Buffer.from(text)];
    const fields = Buffer.alloc(26);
    fields.writeUInt16LE(20, 0);
    fields.writeUInt32LE(crc(bytes), 10);
    fields.writeUInt32LE(bytes.length, 14);
    fields.writeUInt32LE(bytes.length, 18);
    fields.writeUInt16LE(path.length, 22);
    const local = Buffer.concat([Buffer.from("PK\x03\x04", "latin1"), fields, path, bytes]);
    const rest = Buffer.alloc(14);
    rest.writeUInt32LE(at, 10);
    central.push(Buffer.concat([Buffer.from("PK\x01\x02\x14\x00", "latin1"), fields, rest, path]));
    parts.push(local);
    at += local.length;
  }
  const directory = Buffer.concat(central);
  const end = Buffer.alloc(22);
  end.write("PK\x05\x06", "latin1");
  end.writeUInt16LE(central.length, 8);
  end.writeUInt16LE(central.length, 10);
  end.writeUInt32LE(directory.length, 12);
  end.writeUInt32LE(at, 16);
  return Buffer.concat([...parts, directory, end]);
}

function crc(bytes: Buffer): number {
  let sum = ~0;
  for (const byte of bytes) {
    sum ^= byte;
    for (let bit = 0; bit < 8; bit += 1) sum = (sum >>> 1) ^ (sum & 1 ? 0xedb88320 : 0);
  }
  return ~sum >>> 0;
}
