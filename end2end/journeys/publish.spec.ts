import { expect } from "@playwright/test";
import { accessible, inDemo, phone, picture, send, test, url, watch } from "./help.ts";

type Members = Record<string, unknown>;

interface Retriever {
  retriever_id: string;
  retriever_name: string;
}

test("a page asks, tells and writes its fields as its owner says in the form, and shows it before it is public", async ({ page }) => {
  const faults = watch(page);
  const namespace = await inDemo(page, "Retrievers");
  const listed = await send(page, "POST", "/v1/retrievers/list", {}, namespace);
  const source = (listed.results as Retriever[]).find((one) => one.retriever_name === "picture-book-search");
  const copy = await send(page, "POST", `/v1/retrievers/${source?.retriever_id}/clone`, { retriever_name: "own-words" }, namespace);
  const id = (copy.retriever as Retriever).retriever_id;
  const told = async (): Promise<Members> => {
    const answer = await page.request.get(`${url()}/v1/public/retrievers/own-words/config`);
    return ((await answer.json()) as { display_config: Members }).display_config;
  };
  try {
    await page.goto(`${url()}/console/ns/${namespace}/retrievers/${id}/page`);
    const preview = page.frameLocator("iframe[title='Preview of the page']");
    await expect(preview.getByRole("heading", { level: 1 })).toHaveText("own-words");

    // What was added has the focus; what is half written is not shown, and nothing is refused for it.
    const asked = page.getByRole("region", { name: "What visitors are asked" });
    await asked.getByRole("button", { name: "Add an input" }).click();
    const input = asked.getByRole("group", { name: "input 1" });
    await expect(input.getByLabel("Input of the retriever")).toBeFocused();
    await input.getByLabel("Input of the retriever").selectOption("query");
    await expect(input.getByLabel("Input of the retriever")).toBeFocused();
    await input.getByLabel("Label", { exact: true }).fill("Ask the pictures");
    await input.getByLabel("Suggestions").fill("a big cat\nlives in the sea, deep");
    await expect(preview.getByPlaceholder("Ask the pictures")).toBeVisible();
    await expect(preview.getByRole("link", { name: "lives in the sea, deep" })).toHaveCount(1);

    const around = page.getByRole("region", { name: "Around the search" });
    await around.getByRole("button", { name: "Add a section" }).click();
    const section = around.getByRole("group", { name: "section 1" });
    await section.getByLabel("Heading").fill("Help");
    await section.getByLabel("Text of the section").fill("Ask in **any** words.");
    await around.getByRole("button", { name: "Add a section" }).click();
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
    await around.getByRole("button", { name: "Add a link" }).click();
    const link = around.getByRole("group", { name: "link 1" });
    await link.getByLabel("Words of the link").fill("Our museum");
    await link.getByLabel("Leads to").fill("https://example.com/museum");
    await expect(preview.locator("header").getByText("Our museum")).toHaveCount(1);
    await expect(preview.locator("header").getByText("Visit us")).toHaveCount(1);

    const results = page.getByRole("region", { name: "Results and their fields" });
    await results.getByRole("button", { name: "Add a format" }).click();
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
