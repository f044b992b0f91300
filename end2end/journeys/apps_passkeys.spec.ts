import AxeBuilder from "@axe-core/playwright";
import { expect, test, type Page } from "@playwright/test";
import { origin, serve, signUp } from "../apps.ts";
import { start, type Running } from "../server.ts";

const PAGE = '<!doctype html><html lang="en"><head><title>Club</title></head><body><h1>Club</h1><loupe-user-button></loupe-user-button></body></html>';

let server: Running;
let home: string;
test.beforeAll(async () => {
  server = await start({ demo: false });
  home = origin(server, "club");
  await serve(server, "club", { "index.html": PAGE }, { mode: "clerk", clerk_allowed_providers: ["email", "passkey"] });
});
test.afterAll(() => server.stop());

/** A device with a lock that is opened at once, whoever asks. */
async function device(page: Page): Promise<void> {
  const devices = await page.context().newCDPSession(page);
  await devices.send("WebAuthn.enable");
  await devices.send("WebAuthn.addVirtualAuthenticator", {
    options: { protocol: "ctap2", transport: "internal", hasResidentKey: true, hasUserVerification: true, isUserVerified: true, automaticPresenceSimulation: true },
  });
  // Such a device would take what the field of the address offers before anybody looks.
  await page.addInitScript(() => {
    if ("PublicKeyCredential" in window) PublicKeyCredential.isConditionalMediationAvailable = () => Promise.resolve(false);
  });
}

async function accessible(page: Page): Promise<void> {
  expect((await new AxeBuilder({ page }).analyze()).violations).toEqual([]);
}

const who = (page: Page): Promise<string> => page.evaluate(async () => String((await (await fetch("/_auth/session")).json()).user?.email ?? "nobody"));

const signIn = async (page: Page): Promise<void> => {
  await page.context().clearCookies();
  await page.goto(`${home}/_auth/sign-in?${new URLSearchParams({ return_to: "/films?x=1" })}`);
  await page.getByRole("button", { name: "Sign in with a passkey" }).click();
};

test("a passkey is added, signs in without a name, and is removed", async ({ page }) => {
  const refused: string[] = [];
  page.on("console", (message) => {
    if (message.text().includes("Content Security Policy")) refused.push(message.text());
  });
  await device(page);
  await page.goto(`${home}/_auth/sign-up`);
  await signUp(page, server, "ada@example.com");
  await page.getByRole("button", { name: "Account of ada@example.com" }).click();
  await page.getByRole("button", { name: "Passkeys" }).click();
  await expect(page.getByRole("heading", { name: "Passkeys" })).toBeVisible();
  await expect(page.getByText("You have none here.")).toBeVisible();
  await expect(page.getByText("To add one takes")).toBeHidden();
  await page.getByLabel("Name of a new one").fill("Laptop");
  await accessible(page);
  await page.getByRole("button", { name: "Add a passkey" }).click();
  await expect(page.getByRole("listitem")).toContainText("Laptop");
  await accessible(page);
  // The device knows that it has one already.
  await page.getByRole("button", { name: "Add a passkey" }).click();
  await expect(page.getByRole("alert")).toBeVisible();
  await expect(page.getByRole("listitem")).toHaveCount(1);

  await signIn(page);
  await page.waitForURL(`${home}/films?x=1`);
  expect(await who(page)).toBe("ada@example.com");

  await page.goto(`${home}/_auth/passkeys`);
  await expect(page.getByRole("listitem")).toContainText("last used");
  await page.getByRole("button", { name: "Remove Laptop" }).click();
  await expect(page.getByText("You have none here.")).toBeVisible();
  expect(await who(page)).toBe("ada@example.com");
  await signIn(page);
  await expect(page.getByRole("alert")).toContainText("This passkey does not open an account here.");
  expect(await who(page)).toBe("nobody");
  await accessible(page);
  expect(refused).toEqual([]);
});

test("where a browser has none, nobody is asked for one", async ({ page }) => {
  await page.addInitScript(() => Reflect.deleteProperty(window, "PublicKeyCredential"));
  await page.goto(`${home}/_auth/sign-in`);
  await expect(page.getByRole("button", { name: "Sign in", exact: true })).toBeVisible();
  await expect(page.getByRole("button", { name: "Sign in with a passkey" })).toBeHidden();
});
