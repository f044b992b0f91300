import { readFileSync } from "node:fs";
import { get } from "node:http";
import type { Page } from "@playwright/test";
import { expect } from "@playwright/test";

/** A server that apps are made on: its address, a key of its owner, and the file of its log. */
export interface Owner {
  url: string;
  key: string;
  log: string;
}

/** The address of an app: its own origin. */
export const origin = (server: Owner, slug: string): string => `http://${slug}.localhost:${new URL(server.url).port}`;

/** A call of the API as its owner. */
export async function call<T = Record<string, unknown>>(server: Owner, method: string, path: string, body?: unknown): Promise<T> {
  const answer = await fetch(`${server.url}${path}`, {
    method,
    headers: { authorization: `Bearer ${server.key}`, "content-type": "application/json" },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${method} ${path} answered ${answer.status}: ${text}`);
  return (text.startsWith("{") || text.startsWith("[") ? JSON.parse(text) : text) as T;
}

/** What an app's address answers. Browsers know that names below localhost are this machine; the resolver may not. */
export function visit(address: string, headers: Record<string, string> = {}): Promise<{ status: number; text: string }> {
  const { host, port, pathname, search } = new URL(address);
  return new Promise((resolve, reject) => {
    const asked = get({ host: "127.0.0.1", port, path: pathname + search, headers: { host, ...headers } }, (answer) => {
      let text = "";
      answer.setEncoding("utf8");
      answer.on("data", (piece: string) => (text += piece));
      answer.on("end", () => resolve({ status: answer.statusCode ?? 0, text }));
    });
    asked.on("error", reject);
  });
}

/** Makes an app of these files, and waits until it is served; answers its id. */
export async function serve(server: Owner, slug: string, files: Record<string, string>, auth?: unknown): Promise<string> {
  const made = await call<{ app_id: string }>(server, "POST", "/v1/apps", { slug, meta: { title: slug }, auth_config: auth });
  const deploy = await call<{ deploy_id: string }>(server, "POST", `/v1/apps/${made.app_id}/deploy`, { source_files: files });
  const log = await call<string>(server, "GET", `/v1/apps/${made.app_id}/deploys/${deploy.deploy_id}/logs/stream`);
  if (!log.includes('"status":"complete"')) throw new Error(log);
  return made.app_id;
}

/** The address in the newest mail to somebody: a server without a mail server shows its mails in its log. */
export async function linkTo(server: Owner, email: string): Promise<string> {
  let found: string | undefined;
  await expect
    .poll(() => {
      const log = readFileSync(server.log, "utf8");
      const at = log.lastIndexOf(email);
      // The link stands in the mail's text, near the name of whom it is to.
      const near = log.slice(Math.max(0, at - 4000), at + 4000);
      found = [...near.matchAll(/http:\/\/[^\s"\\]*[?&]token=[A-Za-z0-9]+/g)].at(-1)?.[0];
      return at >= 0 && found !== undefined;
    })
    .toBe(true);
  return found ?? "";
}

export const PASSWORD = "a lamp in the cave";

/** Fills in the form of `/_auth/sign-up`, follows the link in the mail, and is signed in. */
export async function signUp(page: Page, server: Owner, email: string): Promise<void> {
  await page.getByLabel("E-mail").fill(email);
  await page.getByLabel("Password").fill(PASSWORD);
  await page.getByRole("button", { name: "Make an account" }).click();
  await expect(page.getByRole("heading", { name: "Look into your mail" })).toBeVisible();
  await page.goto(await linkTo(server, email));
  await page.getByRole("button", { name: "Confirm and sign in" }).click();
  // What is asked of a page on its way to another one is asked of none.
  await page.waitForURL((address) => !address.pathname.startsWith("/_auth/"));
}
