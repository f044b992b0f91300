import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, type Locator, type Page } from "@playwright/test";
import { byWords, fiveAtOnce, onPage, type Members } from "../pages.ts";
import { accessible, noSideways, picture, test, watch } from "./help.ts";

const photo = (name: string): string => join(import.meta.dirname, "../../demo/pictures", name);

const byPicture = (): Members => ({
  display_config: {
    title: "Look alike",
    description: "Things that look like a picture of yours.",
    inputs: [{ field_name: "picture", field_schema: { type: "image" }, input_type: "image", label: "Picture", required: false }],
    exposed_fields: ["title", "category"],
    components: { result_card: { thumbnail_aspect_ratio: "4/3", thumbnail_fit: "contain" } },
  },
});

/** The demo's page with a suggestion that goes on from what one of its own does, too. */
const suggesting = (demo: Members): Members => {
  const [words] = demo.inputs as Members[];
  return byWords({ ...demo, inputs: [{ ...words, suggestions: ["river crossing", "an orchestra"] }] });
};

const articles = (page: Page): Locator => page.getByRole("article");
const box = (page: Page): Locator => page.locator("input[type=search]");

test("a picture is searched with: chosen, dropped, pasted, and found again on the way back", async ({ page }) => {
  const faults = watch(page);
  await onPage(page, "picture-book-by-picture", byPicture, async (address) => {
    const moved = async (event: "drop" | "paste", name: string): Promise<void> => {
      const text = readFileSync(photo(name)).toString("base64");
      await page.evaluate(
        ([event, name, text]) => {
          const bytes = Uint8Array.from(atob(text ?? ""), (letter) => letter.charCodeAt(0));
          const data = new DataTransfer();
          data.items.add(new File([bytes], name ?? "", { type: "image/jpeg" }));
          const about = { bubbles: true, cancelable: true };
          const happens = event === "drop" ? new DragEvent("drop", { ...about, dataTransfer: data }) : new ClipboardEvent("paste", { ...about, clipboardData: data });
          document.querySelector("main")?.dispatchEvent(happens);
        },
        [event, name, text],
      );
    };
    await page.goto(address);
    const input = page.getByLabel("Picture", { exact: true });
    await accessible(page);
    await input.setInputFiles(photo("zebra.jpg"));
    const count = page.locator(".count");
    await expect(count).toContainText("results like zebra.jpg");
    await expect(articles(page).first()).toContainText("Zebra");
    await expect(page.locator(".picked img")).toHaveJSProperty("complete", true);
    await expect(input).toBeHidden();
    // No address holds a picture.
    await expect(page).toHaveURL(address);
    await accessible(page);
    await noSideways(page);
    await picture(page, "public-by-picture");

    await page.getByRole("button", { name: "Remove zebra.jpg" }).click();
    await expect(input).toBeVisible();
    await expect(count.filter({ hasText: "results like" })).toHaveCount(0);

    await moved("drop", "airplane.jpg");
    await expect(page.getByRole("button", { name: "Remove airplane.jpg" })).toBeVisible();
    await expect(articles(page).first()).toContainText("Airplane");
    await moved("paste", "tiger.jpg");
    await expect(count).toContainText("results like tiger.jpg");
    await page.goBack();
    await expect(count).toContainText("results like airplane.jpg");
    await expect(page.getByRole("button", { name: "Remove airplane.jpg" })).toBeVisible();

    await input.setInputFiles({ name: "words.txt", mimeType: "text/plain", buffer: Buffer.from("no picture") });
    await expect(page.getByText("This page takes no such file.").first()).toBeVisible();
    expect(faults).toEqual([]);
  });
});

test("more results come beneath the others, and are there again on the way back", async ({ page }) => {
  const faults = watch(page);
  await onPage(page, "picture-book-search", fiveAtOnce, async (address) => {
    const searched = `${address}?query=an+animal`;
    await page.goto(searched);
    await expect(articles(page)).toHaveCount(5);
    const titles = await articles(page).locator("h3").allInnerTexts();
    const more = page.getByRole("link", { name: "Load more" });
    await more.focus();
    await page.keyboard.press("Enter");
    await expect(articles(page)).toHaveCount(10);
    expect((await articles(page).locator("h3").allInnerTexts()).slice(0, 5)).toEqual(titles);
    await expect(more).toBeFocused();
    await expect(page.locator(".sr[aria-live=polite]")).toHaveText(/^5 more results: 10 of \d+$/);
    await expect(page.getByRole("navigation", { name: "Pages" }).locator("[aria-current=page]")).toHaveText("2");
    await expect(page).toHaveURL(searched);
    await accessible(page);

    const seventh = articles(page).nth(6).getByRole("link").first();
    const title = (await seventh.innerText()).trim();
    await seventh.click();
    await expect(page.getByRole("heading", { level: 1 })).toContainText(title);
    await page.goBack();
    await expect(articles(page)).toHaveCount(10);
    await expect(articles(page).nth(6)).toContainText(title);
    expect(faults).toEqual([]);
  });
});

test("a slow answer shows, never replaces a newer one, and one that fails is asked for again", async ({ page }) => {
  await onPage(page, "picture-book-search", byWords, async (address) => {
    let release = (): void => undefined;
    const held = new Promise<void>((done) => (release = done));
    await page.route(/query=tiger/, async (route) => {
      await held;
      await route.continue().catch(() => undefined);
    });
    await page.route(/query=frog/, (route) => route.abort());
    await page.goto(`${address}?query=bird`);
    const form = page.locator("form[data-search]");
    await box(page).fill("tiger");
    await expect(form).toHaveAttribute("data-slow");
    await box(page).fill("zebra");
    await expect(articles(page).first()).toContainText("Zebra");
    await expect(form).not.toHaveAttribute("data-slow");
    // Back at what is shown, what was typed meanwhile is no longer waited for.
    await box(page).fill("tiger");
    await expect(form).toHaveAttribute("data-slow");
    await box(page).fill("zebra");
    await expect(form).not.toHaveAttribute("data-slow");
    await expect(page.locator("[data-results]")).not.toHaveAttribute("aria-busy");
    release();
    await expect(page).toHaveURL(/query=zebra/);
    await expect(articles(page).first()).toContainText("Zebra");

    await box(page).fill("frog");
    const failed = page.getByRole("alert");
    await expect(failed).toContainText("The search could not be reached");
    await accessible(page);
    await page.unroute(/query=frog/);
    await failed.getByRole("button", { name: "Try again" }).click();
    await expect(articles(page).first()).toContainText(/frog/i);
    await expect(page).toHaveURL(/query=frog/);
  });
});

test("half a word of an input method is no search; of a whole one the number of results is said", async ({ page }) => {
  await onPage(page, "picture-book-search", byWords, async (address) => {
    await page.goto(address);
    await page.waitForLoadState("load");
    const asked: string[] = [];
    page.on("request", (request) => {
      const words = new URL(request.url()).searchParams.get("query");
      if (words !== null) asked.push(words);
    });
    // As an input method writes it, and then longer than the page waits for the next letter.
    const composed = (words: string, isOver: boolean): Promise<void> =>
      box(page).evaluate(
        async (field: HTMLInputElement, { words, isOver }) => {
          field.value = words;
          const written = new InputEvent("input", { bubbles: true, isComposing: true });
          field.dispatchEvent(isOver ? new CompositionEvent("compositionend", { bubbles: true, data: words }) : written);
          await new Promise((done) => setTimeout(done, 600));
        },
        { words, isOver },
      );
    await composed("zeb", false);
    // The key that ends the word sends no form: some browsers tell of it once the word is over, and by its number alone.
    const sends = (key: KeyboardEventInit): Promise<boolean> =>
      box(page).evaluate((field, key) => field.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true, cancelable: true, ...key })), key);
    expect([await sends({ isComposing: true }), await sends({ keyCode: 229 }), await sends({})]).toEqual([false, false, true]);
    expect(asked).toEqual([]);
    await composed("zebra", true);
    await expect(page).toHaveURL(/query=zebra/);
    await expect(articles(page).first()).toContainText("Zebra");
    expect(asked).toEqual(["zebra"]);
    await expect(page.locator(".sr[aria-live=polite]")).toHaveText(/^\d+ results? for “zebra”/);
    // And the number alone, never the list.
    await expect(page.locator("[data-results]")).not.toHaveAttribute("aria-live");
  });
});

test("recent searches and suggestions are beneath the field, and what is kept goes when it is told to", async ({ page, browser }) => {
  const faults = watch(page);
  await onPage(page, "picture-book-search", suggesting, async (address) => {
    const search = async (on: Page, words: string): Promise<void> => {
      await on.goto(address);
      await box(on).fill(words);
      await box(on).press("Enter");
      await expect(on).toHaveURL(/query=/);
      await expect(articles(on).first()).toBeVisible();
    };
    await search(page, "tiger");
    await search(page, "a planet with rings");
    await page.goto(address);
    const recent = page.getByRole("listbox", { name: "Recent searches" });
    await expect(recent).toBeHidden();
    await box(page).click();
    await expect(recent.getByRole("option")).toHaveText([/^a planet with rings/, /^tiger/]);
    await expect(box(page)).toHaveRole("combobox");
    await expect(box(page)).toHaveAttribute("aria-expanded", "true");
    await accessible(page);
    await picture(page, "public-recent");
    await box(page).press("ArrowDown");
    await page.keyboard.press("ArrowDown");
    const tiger = recent.getByRole("option", { name: "tiger" });
    await expect(tiger).toHaveAttribute("aria-selected", "true");
    await expect(box(page)).toHaveAttribute("aria-activedescendant", (await tiger.getAttribute("id")) ?? "");
    await expect(box(page)).toBeFocused();
    await page.keyboard.press("Escape");
    await expect(recent).toBeHidden();
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    await expect(box(page)).toHaveValue("a planet with rings");
    await expect(recent).toBeHidden();

    // What is typed is gone on from: in recent searches, and in what the owner suggests.
    const offers = page.getByRole("listbox", { name: "Suggestions" });
    await box(page).fill("ri");
    await expect(offers.getByRole("option")).toHaveText([/^a planet with ringsrecent$/, "river crossing"]);
    await accessible(page);
    await picture(page, "public-suggestions");
    await page.keyboard.press("ArrowUp");
    await expect(offers.getByRole("option", { name: "river crossing" })).toHaveAttribute("aria-selected", "true");
    await page.keyboard.press("ArrowDown");
    await expect(box(page)).not.toHaveAttribute("aria-activedescendant");
    await offers.getByRole("option", { name: "river crossing" }).click();
    await expect(box(page)).toHaveValue("river crossing");
    await expect(page).toHaveURL(/query=river\+crossing/);
    await expect(offers).toBeHidden();
    await box(page).fill("nothing like it");
    await expect(offers).toBeHidden();

    await page.goto(address);
    await box(page).click();
    await page.getByRole("button", { name: "Clear recent searches" }).click();
    await expect(recent).toBeHidden();
    await expect(box(page)).toBeFocused();
    expect(await page.evaluate(() => Object.keys(localStorage))).toEqual([]);

    const unfollowed = await browser.newContext({ extraHTTPHeaders: { dnt: "1" } });
    const other = await unfollowed.newPage();
    await search(other, "tiger");
    expect(await other.evaluate(() => Object.keys(localStorage))).toEqual([]);
    await unfollowed.close();
    expect(faults).toEqual([]);
  });
});

test("pictures are looked at large one after the other, and the results are shared", async ({ page, context }) => {
  const faults = watch(page);
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  // As on machines without a way of their own to share.
  await page.addInitScript(() => Object.defineProperty(navigator, "share", { value: undefined }));
  await onPage(page, "picture-book-search", byWords, async (address) => {
    await page.goto(`${address}?query=a+big+cat`);
    const enlarge = page.getByRole("button", { name: /^Enlarge the picture of / });
    await expect(enlarge.first()).toBeVisible();
    const number = await enlarge.count();
    expect(number).toBeGreaterThan(2);
    await enlarge.first().click();
    const dialog = page.getByRole("dialog", { name: "Pictures of the results" });
    await expect(dialog).toBeVisible();
    await expect(dialog).toContainText(`1 of ${number}`);
    await expect.poll(() => dialog.getByRole("img").evaluate((image: HTMLImageElement) => image.naturalWidth)).toBeGreaterThan(0);
    await accessible(page);
    await picture(page, "public-lightbox");
    // The address is that of the item.
    await expect(page).toHaveURL(/\/item\//);
    const first = page.url();
    await page.keyboard.press("ArrowRight");
    await expect(dialog).toContainText(`2 of ${number}`);
    await expect(page).not.toHaveURL(first);
    await expect(dialog.getByRole("img")).toHaveAccessibleName((await articles(page).nth(1).locator("h3").innerText()).trim());
    await page.keyboard.press("Escape");
    await expect(dialog).toBeHidden();
    await expect(page).toHaveURL(`${address}?query=a+big+cat`);
    await expect(enlarge.nth(1)).toBeFocused();
    await page.keyboard.press("Enter");
    await expect(dialog.getByRole("link", { name: "Download" })).toHaveAttribute("href", /./);
    await dialog.getByRole("button", { name: "Copy link" }).click();
    await expect(dialog.getByRole("button", { name: "Link copied" })).toBeVisible();
    expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(page.url().split("?")[0]);
    await dialog.getByRole("button", { name: "Previous picture" }).click();
    await dialog.getByRole("button", { name: "Previous picture" }).click();
    await expect(dialog).toContainText(`${number} of ${number}`);
    await dialog.getByRole("button", { name: "Close" }).click();
    await expect(dialog).toBeHidden();
    // The way back closes it too, and the results are as they were.
    await enlarge.first().click();
    await expect(dialog).toBeVisible();
    await page.goBack();
    await expect(dialog).toBeHidden();
    await expect(page).toHaveURL(`${address}?query=a+big+cat`);
    await expect(enlarge).toHaveCount(number);

    await page.getByRole("button", { name: "Share" }).click();
    await expect(page.getByRole("button", { name: "Link copied" })).toBeVisible();
    expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(`${address}?query=a+big+cat`);
    await expect(page.locator(".sr[aria-live=polite]")).toHaveText("Link copied");
    expect(faults).toEqual([]);
  });
});

test("what was found in a recording plays among the pictures", async ({ page }) => {
  await onPage(page, "picture-book-search", byWords, async (address) => {
    // The demo has pictures alone: a recording is put into an item's page as the server writes it.
    await page.route(/\/item\//, async (route) => {
      const reply = await route.fetch();
      const figure = `<figure class="figure"><audio src="/nothing.wav#t=42" controls aria-label="A recording"></audio></figure>`;
      const body = (await reply.text()).replace("<article", `${figure}<article`);
      await route.fulfill({ response: reply, body });
    });
    await page.goto(`${address}?query=bird`);
    // Of a recording there is no whole picture.
    await page.locator("[data-full]").evaluateAll((all) => all.forEach((one) => one.removeAttribute("data-full")));
    await page.getByRole("button", { name: /^Enlarge the picture of / }).first().click();
    const dialog = page.getByRole("dialog", { name: "Pictures of the results" });
    await expect(dialog.locator("audio")).toHaveAttribute("src", /#t=42$/);
    await expect(dialog.getByRole("img")).toHaveCount(0);
    await page.keyboard.press("Escape");
    await expect(dialog).toBeHidden();
    await expect(dialog.locator("audio")).toHaveCount(0);
  });
});

test("what is done with results is told, and nothing of those who ask not to be followed", async ({ page, context, browser }) => {
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  type Act = { document_id: string; interaction_type: string[]; execution_id?: string };
  const listen = (on: Page): Promise<void> =>
    on.addInitScript(() => {
      const send = navigator.sendBeacon.bind(navigator);
      navigator.sendBeacon = (to, data) => {
        sessionStorage.setItem("heard", `${sessionStorage.getItem("heard") ?? ""}${String(data)}\n`);
        return send(to, data);
      };
    });
  const heard = async (on: Page): Promise<Act[]> => {
    const lines = (await on.evaluate(() => sessionStorage.getItem("heard") ?? "")).split("\n").filter((line) => line !== "");
    return lines.flatMap((line) => (JSON.parse(line) as { interactions: Act[] }).interactions);
  };
  const kinds = async (): Promise<string[]> => (await heard(page)).flatMap((act) => act.interaction_type);
  await onPage(page, "picture-book-search", byWords, async (address) => {
    await listen(page);
    const sent = page.waitForRequest(/\/interactions\/batch$/);
    await page.goto(`${address}?query=a+big+cat`);
    await expect(articles(page).first()).toBeVisible();
    await sent;
    await expect.poll(kinds).toContain("impression");
    const seen = await heard(page);
    expect(new Set(seen.map((act) => act.document_id)).size).toBe(seen.length);
    expect(seen.every((act) => act.execution_id)).toBe(true);
    await articles(page).first().getByRole("link").first().click();
    await expect(page.getByRole("heading", { level: 1 })).toBeVisible();
    await expect(page.getByRole("link", { name: "Download" })).toBeVisible();
    await page.getByRole("button", { name: "Copy link" }).click();
    await expect.poll(kinds).toEqual(expect.arrayContaining(["impression", "click", "view", "share"]));

    const unfollowed = await browser.newContext({ extraHTTPHeaders: { dnt: "1" } });
    const other = await unfollowed.newPage();
    await listen(other);
    await other.goto(`${address}?query=a+big+cat`);
    await expect(articles(other).first()).toBeVisible();
    // Longer than it takes to tell what was seen.
    await other.evaluate(() => new Promise((done) => setTimeout(done, 5000)));
    expect(await heard(other)).toEqual([]);
    await unfollowed.close();
  });
});

test("the stages of a search are shown while it runs, where the owner wants it", async ({ page }) => {
  const told = (demo: Members): Members => ({ display_config: { ...demo, extensions: { progress: true } } });
  await onPage(page, "picture-book-search", told, async (address) => {
    await page.goto(`${address}?query=bird`);
    const stages = page.locator(".stages");
    await expect(stages.locator("summary")).toHaveText("Stages");
    await box(page).fill("zebra");
    await expect(articles(page).first()).toContainText("Zebra");
    await expect(stages.locator("summary")).toHaveText(/^Stage \d+ of \d+$/);
    await stages.locator("summary").click();
    await expect(stages.getByRole("listitem").first()).toHaveText(/^\d+ found in \d+ ms$/);
    await accessible(page);
  });
});

test("a moment of a recording plays at once", async ({ page }) => {
  await onPage(page, "picture-book-search", byWords, async (address) => {
    // The demo has pictures alone: a recording and its moments are put into an item's page as the server writes them.
    const figure = `<figure class="figure"><audio src="/nothing.wav" controls aria-label="A recording"></audio></figure>`;
    const moment = (seconds: number): string =>
      `<li><a href="?at=${seconds}" data-seek="${seconds}"><span class="when">0:${seconds}</span></a></li>`;
    const moments = `<section class="moments" data-moments><ol>${moment(10)}${moment(42)}</ol></section>`;
    await page.route(/\/item\//, async (route) => {
      const reply = await route.fetch();
      const body = (await reply.text()).replace("<article", `${figure}${moments}<article`);
      await route.fulfill({ response: reply, body });
    });
    await page.goto(`${address}?query=bird`);
    await articles(page).first().getByRole("link").first().click();
    await expect(page).toHaveURL(/\/item\//);
    const before = page.url();
    // Before its script is there, the link is one.
    await page.waitForLoadState("load");
    await page.getByRole("link", { name: "0:42" }).click();
    await expect.poll(() => page.locator("audio").evaluate((player: HTMLAudioElement) => player.currentTime)).toBe(42);
    await expect(page.getByRole("link", { name: "0:42" })).toHaveAttribute("aria-current", "true");
    expect(page.url()).toBe(before);
  });
});

test.describe("without JavaScript", () => {
  test.use({ javaScriptEnabled: false });

  test("a picture is searched with", async ({ page }) => {
    await onPage(page, "picture-book-by-picture", byPicture, async (address) => {
      await page.goto(address);
      await page.getByLabel("Picture", { exact: true }).setInputFiles(photo("zebra.jpg"));
      await page.getByRole("button", { name: "Search" }).click();
      await expect(articles(page).first()).toContainText("Zebra");
      await expect(page.getByText("Searched with zebra.jpg.")).toBeVisible();
    });
  });

  test("the next page is a page, and what only a script can do is not offered", async ({ page }) => {
    await onPage(page, "picture-book-search", fiveAtOnce, async (address) => {
      await page.goto(`${address}?query=an+animal`);
      await expect(articles(page)).toHaveCount(5);
      for (const name of ["Share", "Load more"]) await expect(page.getByText(name, { exact: true })).toBeHidden();
      await page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name: "Next" }).click();
      await expect(page).toHaveURL(/page=2/);
      await expect(articles(page)).toHaveCount(5);
    });
  });
});
