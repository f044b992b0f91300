import { expect, type Page } from "@playwright/test";
import { accessible, add, inDemo, phone, picture, send, test, url, watch } from "./help.ts";

type Members = Record<string, unknown>;

interface Retriever {
  retriever_id: string;
  retriever_name: string;
}

/** A picture of one point. */
const DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/** A retriever of the name, as the demo's is, to be published. */
async function copied(page: Page, name: string): Promise<{ namespace: string; id: string }> {
  const namespace = await inDemo(page, "Retrievers");
  const listed = await send(page, "POST", "/v1/retrievers/list", {}, namespace);
  const source = (listed.results as Retriever[]).find((one) => one.retriever_name === "picture-book-search");
  const copy = await send(page, "POST", `/v1/retrievers/${source?.retriever_id}/clone`, { retriever_name: name }, namespace);
  return { namespace, id: (copy.retriever as Retriever).retriever_id };
}

/** What everybody is told of a page. */
async function published(page: Page, name: string): Promise<Members> {
  const answer = await page.request.get(`${url()}/v1/public/retrievers/${name}/config`);
  return ((await answer.json()) as { display_config: Members }).display_config;
}

test("a page asks, tells and writes its fields as its owner says in the form, and shows it before it is public", async ({ page }) => {
  const faults = watch(page);
  const { namespace, id } = await copied(page, "own-words");
  const told = () => published(page, "own-words");
  try {
    await page.goto(`${url()}/console/ns/${namespace}/retrievers/${id}/page`);
    const preview = page.frameLocator("iframe[title='Preview of the page']");
    await expect(preview.getByRole("heading", { level: 1 })).toHaveText("own-words");

    // What was added has the focus; what is half written is not shown, and nothing is refused for it.
    const asked = page.getByRole("region", { name: "What visitors are asked" });
    await add(asked, "Add an input");
    const input = asked.getByRole("group", { name: "input 1" });
    await expect(input.getByLabel("Input of the retriever")).toBeFocused();
    await input.getByLabel("Input of the retriever").selectOption("query");
    await expect(input.getByLabel("Input of the retriever")).toBeFocused();
    await input.getByLabel("Label", { exact: true }).fill("Ask the pictures");
    await input.getByLabel("Suggestions").fill("a big cat\nlives in the sea, deep");
    await expect(preview.getByPlaceholder("Ask the pictures")).toBeVisible();
    await expect(preview.getByRole("link", { name: "lives in the sea, deep" })).toHaveCount(1);

    const around = page.getByRole("region", { name: "Around the search" });
    await add(around, "Add a section");
    const section = around.getByRole("group", { name: "section 1" });
    await section.getByLabel("Heading").fill("Help");
    await section.getByLabel("Text of the section").fill("Ask in **any** words.");
    await add(around, "Add a section");
    const second = around.getByRole("group", { name: "section 2" });
    await second.getByLabel("Heading").fill("About these pictures");
    await second.getByLabel("Text of the section").fill("Drawn by many hands.");
    // What was written before another was added is still there, and can be moved.
    await expect(section.getByLabel("Heading")).toHaveValue("Help");
    await around.getByRole("button", { name: "Move section 2 up" }).click();
    await expect(section.getByLabel("Heading")).toHaveValue("About these pictures");
    await expect(preview.locator("section.about summary").first()).toHaveText("About these pictures");
    const button = around.getByRole("group", { name: "Button at the top" });
    await button.getByLabel("Words on the button").fill("Visit us");
    await button.getByLabel("What it opens").fill("Come by.");
    await add(around, "Add a link");
    const link = around.getByRole("group", { name: "link 1" });
    await link.getByLabel("Words of the link").fill("Our museum");
    await link.getByLabel("Leads to").fill("https://example.com/museum");
    await expect(preview.locator("header").getByText("Our museum")).toHaveCount(1);
    await expect(preview.locator("header").getByText("Visit us")).toHaveCount(1);

    const results = page.getByRole("region", { name: "Results and their fields" });
    await results.getByRole("checkbox", { name: "The number of results above them" }).uncheck();
    await add(results, "Add a format");
    const format = results.getByRole("group", { name: "format 1" });
    await format.getByLabel("Field", { exact: true }).selectOption("category");
    await format.getByLabel("Called").fill("Chapter");
    const letters = format.getByLabel("Letters at most");
    // What is refused is told beside its field while it is written, and the last preview stays.
    await letters.fill("0");
    await expect(letters).toHaveAttribute("aria-invalid", "true");
    await expect(letters).toHaveAccessibleDescription(/greater than or equal to 1/);
    await expect(preview.locator("section.about summary").first()).toHaveText("About these pictures");
    await accessible(page);
    await letters.fill("40");
    await expect(letters).not.toHaveAttribute("aria-invalid", "true");
    await accessible(page);
    await picture(page, "page-parts");
    await phone(page);

    await page.getByRole("main").getByRole("button", { name: "Publish", exact: true }).click();
    await expect(page.getByRole("link", { name: /\/r\/own-words$/ })).toBeVisible();
    const made = await told();
    expect(made.inputs).toMatchObject([{ field_name: "query", label: "Ask the pictures", suggestions: ["a big cat", "lives in the sea, deep"] }]);
    expect(made.markdowns).toEqual([
      { title: "About these pictures", content: "Drawn by many hands." },
      { title: "Help", content: "Ask in **any** words." },
    ]);
    expect(made.custom_cta).toEqual({ label: "Visit us", markdown_content: "Come by." });
    expect(made.components).toMatchObject({ show_results_header: false });
    expect(made.external_links).toEqual([{ name: "Our museum", url: "https://example.com/museum" }]);
    expect(made.field_config).toMatchObject({ category: { format: "text", format_options: { label: "Chapter", truncate_chars: 40 } } });

    // It is read back as it was written. A field that visitors do not see any more has no format.
    await expect(input.getByLabel("Label", { exact: true })).toHaveValue("Ask the pictures");
    await expect(format.getByLabel("Called")).toHaveValue("Chapter");
    await around.getByRole("button", { name: "Remove link 1" }).click();
    await expect(around.getByRole("button", { name: "Add a link" })).toBeFocused();
    await page.getByRole("group", { name: "Fields that visitors see" }).getByRole("checkbox", { name: "category", exact: true }).uncheck();
    await page.getByRole("button", { name: "Publish the changes" }).click();
    await expect(page.getByText("The page is changed.")).toBeVisible();
    await expect.poll(async () => JSON.stringify((await told()).field_config ?? {})).toBe("{}");
    expect((await told()).external_links ?? []).toEqual([]);
    // The browser itself logs each refusal of the server.
    expect(faults.filter((fault) => !fault.includes("422"))).toEqual([]);
  } finally {
    await send(page, "DELETE", `/v1/retrievers/${id}/publish`, undefined, namespace).catch(() => undefined);
    await send(page, "DELETE", `/v1/retrievers/${id}`, undefined, namespace);
  }
});

test("a page has the icon, the arrangement, the words for search engines and the frames that its owner chooses", async ({ page, context }) => {
  const faults = watch(page);
  const { namespace, id } = await copied(page, "own-look");
  const sites = async (): Promise<string> => {
    const answer = await page.request.get(`${url()}/r/own-look/embed`);
    return answer.headers()["content-security-policy"] ?? "";
  };
  try {
    await page.goto(`${url()}/console/ns/${namespace}/retrievers/${id}/page`);
    const preview = page.frameLocator("iframe[title='Preview of the page']");
    await expect(preview.getByRole("heading", { level: 1 })).toHaveText("own-look");

    const look = page.getByRole("region", { name: "Look", exact: true });
    const icon = look.getByLabel("Choose an icon");
    await icon.setInputFiles({ name: "notes.txt", mimeType: "text/plain", buffer: Buffer.from("no picture") });
    await expect(icon).toHaveAttribute("aria-invalid", "true");
    await expect(icon).toHaveAccessibleDescription(/no picture/);
    await icon.setInputFiles({ name: "dot.png", mimeType: "image/png", buffer: Buffer.from(DOT, "base64") });
    await expect(look.getByRole("img", { name: "The icon as it is" })).toBeVisible();
    await expect(icon).not.toHaveAttribute("aria-invalid", "true");
    await look.getByLabel("Results", { exact: true }).selectOption("grid");
    await look.getByLabel("Columns").selectOption("2");
    await look.getByLabel("Room between results").selectOption("24px");
    await look.getByRole("checkbox", { name: "Results over the whole width of the window" }).check();

    const places = page.getByRole("group", { name: "Which field is what" });
    await places.getByLabel("Title of a result").selectOption("name_de");
    await places.getByLabel("Mark on its picture").selectOption("category");

    const engines = page.getByRole("region", { name: "Search engines and links" });
    // The card of a link has the picture that would be drawn of the page, before anything is public.
    const drawn = engines.getByRole("img", { name: "The picture that links to the page are shown with" });
    await drawn.scrollIntoViewIfNeeded();
    await expect.poll(() => drawn.evaluate((shown) => (shown as HTMLImageElement).naturalWidth)).toBe(1200);
    await engines.getByLabel("What the picture shows").fill("A frog among reeds");
    await engines.getByLabel("Keywords").fill("frogs, picture book");
    await engines.getByLabel("Address to list in its place").fill("https://example.com/frogs");
    await engines.getByText("More settings").click();
    await engines.getByLabel("Author", { exact: true }).fill("A biologist");

    // Sites that are none would show nothing: they are told beside their field, and not published.
    const frames = page.getByRole("region", { name: "Frames of other sites" });
    await frames.getByLabel("May show it").selectOption("listed");
    await expect(frames.getByLabel("May show it")).toBeFocused();
    const named = frames.getByLabel("Sites", { exact: true });
    await named.fill("https://*.example.com\nshop.example");
    await expect(named).toHaveAttribute("aria-invalid", "true");
    await expect(named).toHaveAccessibleDescription(/'shop\.example' is no site/);
    await accessible(page);
    const publish = page.getByRole("main").getByRole("button", { name: "Publish", exact: true });
    await publish.click();
    await expect(named).toBeFocused();
    expect((await page.request.get(`${url()}/r/own-look`)).status()).toBe(404);
    await named.fill("https://*.example.com\nhttps://shop.example");
    await expect(named).not.toHaveAttribute("aria-invalid", "true");
    await phone(page);
    await publish.click();
    await expect(page.getByRole("link", { name: /\/r\/own-look$/ })).toBeVisible();

    const visitor = await context.newPage();
    const unseen = watch(visitor);
    await visitor.goto(`${url()}/r/own-look?q=frog`);
    await expect(visitor.getByRole("heading", { name: "Ein Frosch", exact: true })).toBeVisible();
    await expect(visitor.locator("body")).toHaveClass(/\bm-grid\b.*\bwide\b/);
    const gap = await visitor.evaluate(() => getComputedStyle(document.documentElement).getPropertyValue("--gap"));
    expect(gap.trim()).toBe("24px");
    await expect(visitor.locator("header img.logo")).toHaveAttribute("src", "/r/own-look/icon");
    await expect(visitor.locator("link[rel=icon]")).toHaveAttribute("href", "/r/own-look/icon");
    expect((await visitor.request.get(`${url()}/r/own-look/icon`)).headers()["content-type"]).toBe("image/png");
    await expect(visitor.locator("meta[name=keywords]")).toHaveAttribute("content", "frogs, picture book");
    await expect(visitor.locator("meta[name=author]")).toHaveAttribute("content", "A biologist");
    await expect(visitor.locator("link[rel=canonical]")).toHaveAttribute("href", "https://example.com/frogs");
    await expect(visitor.locator("meta[property='og:image:alt']")).toHaveAttribute("content", "A frog among reeds");
    expect(unseen).toEqual([]);
    await visitor.close();
    expect(await sites()).toContain("frame-ancestors 'self' https://*.example.com https://shop.example");
    const made = await published(page, "own-look");
    expect(made.field_mappings).toEqual({ title: "name_de", badge: "category" });
    expect(made.layout).toEqual({ mode: "grid", columns: 2, gap: "24px", full_width: true });

    // It is read back as it was written, and what is taken away is gone.
    await expect(named).toHaveValue("https://*.example.com\nhttps://shop.example");
    await expect(engines.getByLabel("Author", { exact: true })).toHaveValue("A biologist");
    await look.getByRole("button", { name: "Remove the icon" }).click();
    await expect(icon).toBeFocused();
    await places.getByLabel("Title of a result").selectOption("");
    await engines.getByLabel("Address to list in its place").fill("");
    await frames.getByLabel("May show it").selectOption("none");
    await page.getByRole("button", { name: "Publish the changes" }).click();
    await expect(page.getByText("The page is changed.")).toBeVisible();
    await expect.poll(sites).toMatch(/frame-ancestors 'self'$/);
    const left = await published(page, "own-look");
    expect(left.field_mappings).toEqual({ badge: "category" });
    expect(left).not.toHaveProperty("icon_base64");
    expect(left.seo).not.toHaveProperty("canonical_url");
    expect(left.seo).toMatchObject({ keywords: ["frogs", "picture book"], author: "A biologist", og_image_alt: "A frog among reeds" });

    // What is written and not saved stays as the page is paused, opened and renamed beside it.
    const title = page.getByRole("region", { name: "Content", exact: true }).getByLabel("Title", { exact: true });
    await title.fill("Written and not saved");
    const pause = page.getByRole("main").getByRole("button", { name: "Pause", exact: true });
    await pause.click();
    const open = page.getByRole("main").getByRole("button", { name: "Open again", exact: true });
    await expect(open).toBeFocused();
    expect((await page.request.get(`${url()}/r/own-look`)).status()).toBe(404);
    await accessible(page);
    await open.click();
    await expect(pause).toBeFocused();
    await expect(title).toHaveValue("Written and not saved");

    // Under another name it is the same page, and what knows the old one is led on.
    await page.getByRole("main").getByRole("button", { name: "Rename", exact: true }).click();
    const dialog = page.getByRole("dialog", { name: "Give the page another name" });
    const name = dialog.getByLabel("Name in the address");
    await expect(name).toHaveValue("own-look");
    await dialog.getByRole("button", { name: "Rename" }).click();
    await expect(name).toHaveAttribute("aria-invalid", "true");
    await accessible(page);
    await name.fill("own-look-again");
    await dialog.getByRole("button", { name: "Rename" }).click();
    await expect(page.getByRole("link", { name: /\/r\/own-look-again$/ })).toBeVisible();
    await expect(engines.getByText(/ r › own-look-again$/)).toBeVisible();
    await expect(title).toHaveValue("Written and not saved");
    const old = await page.request.get(`${url()}/r/own-look`, { maxRedirects: 0 });
    expect(old.status()).toBe(308);

    // Who takes it down is told what goes with it.
    const main = page.getByRole("main");
    const down = page.getByRole("dialog", { name: "Take the page down?" });
    const lost = down.getByText("What you wrote in the form and did not publish is lost with it.");
    await main.getByRole("button", { name: "Take it down" }).click();
    await expect(lost).toBeVisible();
    await accessible(page);
    await down.getByRole("button", { name: "Cancel" }).click();
    await expect(title).toHaveValue("Written and not saved");
    // The form begins anew with what is saved, and with the documents that are read last.
    const anew = page.waitForResponse((answer) => answer.url().includes("/documents/list"));
    await main.getByRole("button", { name: "Publish the changes" }).click();
    await anew;
    await main.getByRole("button", { name: "Take it down" }).click();
    await expect(down).toContainText("The retriever stays.");
    await expect(lost).toHaveCount(0);
    await down.getByRole("button", { name: "Take it down" }).click();
    await expect(main.getByRole("button", { name: "Publish", exact: true })).toBeVisible();
    expect((await page.request.get(`${url()}/r/own-look-again`)).ok()).toBe(false);
    expect(faults).toEqual([]);
  } finally {
    await send(page, "DELETE", `/v1/retrievers/${id}/publish`, undefined, namespace).catch(() => undefined);
    await send(page, "DELETE", `/v1/retrievers/${id}`, undefined, namespace);
  }
});
