import { expect, type Page } from "@playwright/test";
import { accessible, add, inDemo, open, phone, picture, send, steady, test, watch } from "./help.ts";

interface Hit {
  document_id: string;
}

/** What the retriever finds first for a question. */
async function first(page: Page, retriever: string, query: string, namespace: string): Promise<string> {
  const answer = await send(page, "POST", `/v1/retrievers/${retriever}/execute`, { inputs: { query } }, namespace);
  return (answer.documents as Hit[])[0].document_id;
}

test("retrievers are measured with a dataset, their searches are looked into, and two are compared", async ({ page }) => {
  const faults = watch(page);
  const namespace = await inDemo(page, "Evaluations");
  await expect(page.getByRole("heading", { name: "No dataset here" })).toBeVisible();
  await accessible(page);

  const listed = await send(page, "POST", "/v1/retrievers/list", {}, namespace);
  const retriever = (listed.results as { retriever_id: string; retriever_name: string }[]).find((one) => one.retriever_name === "picture-book-search");
  const id = retriever?.retriever_id ?? "";
  const questions = ["striped animal of the savanna", "a boat on the water"];
  const right = [await first(page, id, questions[0], namespace), await first(page, id, questions[1], namespace)];

  await page.getByRole("button", { name: "Write a dataset" }).first().click();
  const form = page.getByRole("dialog", { name: "Write a dataset" });
  await form.getByLabel("Name", { exact: true }).fill("what children ask");
  await add(form, "Add a query");
  for (const [at, question] of questions.entries()) {
    const query = form.getByRole("group", { name: `query ${at + 1}` });
    await query.getByLabel("Inputs").fill(JSON.stringify({ query: question }));
    await query.getByLabel("Right documents").fill(right[at]);
  }
  await accessible(page);
  await picture(page, "dataset-form");
  await phone(page);
  await form.getByRole("button", { name: "Create", exact: true }).click();
  const dataset = page.getByRole("row", { name: /what children ask/ });
  await expect(dataset).toContainText("2");
  await dataset.getByRole("button", { name: /^Queries/ }).click();
  const queries = page.getByRole("dialog", { name: "Queries of what children ask" });
  await expect(queries.getByRole("row", { name: /striped animal/ })).toContainText(right[0]);
  await accessible(page);
  await picture(page, "dataset");
  await phone(page);
  await page.keyboard.press("Escape");

  // One retriever, measured twice.
  await open(page, "Retrievers");
  await page.getByRole("link", { name: "picture-book-search" }).click();
  const parts = page.getByRole("navigation", { name: "Parts of the retriever" });
  await parts.getByRole("link", { name: "Evaluations" }).click();
  await expect(page.getByRole("heading", { name: "Never evaluated" })).toBeVisible();
  const evaluate = async (): Promise<void> => {
    await page.getByRole("button", { name: "Evaluate" }).first().click();
    const begin = page.getByRole("dialog", { name: "Evaluate this retriever" });
    await begin.getByLabel("Dataset").selectOption("what children ask");
    await begin.getByRole("checkbox", { name: "1", exact: true }).check();
    await begin.getByRole("checkbox", { name: "10", exact: true }).check();
    await begin.getByRole("button", { name: "Begin" }).click();
    await expect(begin).toBeHidden();
  };
  await evaluate();
  const rows = page.getByRole("main").locator("tbody tr");
  await expect(rows.first()).toContainText("completed");
  await expect(rows.first()).toContainText("1.000");
  await evaluate();
  await expect(rows).toHaveCount(2);
  await expect(rows.first()).toContainText("as good or better");
  await accessible(page);
  await steady(page);
  await picture(page, "evaluations");
  await phone(page);
  await rows.first().getByRole("button", { name: /^Figures/ }).click();
  const figures = page.getByRole("dialog", { name: "Evaluation over what children ask" });
  await expect(figures.getByRole("region", { name: "Figures" }).getByRole("row")).toHaveCount(3);
  await expect(figures.getByRole("row", { name: /ndcg@10/ })).toContainText("0.000");
  await accessible(page);
  await picture(page, "evaluation");
  await phone(page);
  await page.keyboard.press("Escape");

  // What it was asked before.
  await parts.getByRole("link", { name: "Executions" }).click();
  await expect(page.getByRole("row", { name: /striped animal/ }).first()).toContainText("completed");
  await accessible(page);
  await steady(page);
  await picture(page, "executions");
  await phone(page);
  await page.getByRole("row", { name: /striped animal/ }).first().getByRole("button", { name: /^Stages/ }).click();
  const execution = page.getByRole("dialog", { name: "Execution" });
  await expect(execution.getByRole("region", { name: "Stages" }).locator("tbody tr").first()).toBeVisible();
  await accessible(page);
  await picture(page, "execution");
  await page.keyboard.press("Escape");

  // What it is asked in all, on its page and elsewhere.
  await parts.getByRole("link", { name: "Searches" }).click();
  const main = page.getByRole("main");
  await expect(main.getByRole("img", { name: "Searches" })).toBeVisible();
  await expect(main.getByRole("region", { name: "What is asked for most" }).getByRole("row", { name: /striped animal/ }).first()).toBeVisible();
  await accessible(page);
  await steady(page);
  await picture(page, "searches");
  await phone(page);
  await page.getByLabel("Span of time").selectOption("Last 7 days");
  await expect(page).toHaveURL(/span=week/);
  await expect(main.getByRole("img", { name: "Searches" })).toBeVisible();
  await page.getByLabel("Where it was asked").selectOption("Asked on the page");
  await expect(page).toHaveURL(/source=page/);

  // Beside one that finds a single document.
  const model = await send(page, "GET", `/v1/retrievers/${id}`, undefined, namespace);
  const stages = (model.stages as Record<string, unknown>[]).map(({ stage_name, stage_type, config }) => ({ stage_name, stage_type, config }));
  stages.push({ stage_name: "last", stage_type: "reduce", config: { stage_id: "limit", parameters: { limit: 1, offset: 1 } } });
  const input_schema = { query: { type: "text", required: true } };
  const copy = await send(page, "POST", `/v1/retrievers/${id}/clone`, { retriever_name: "second-best", stages, input_schema }, namespace);
  // One that cannot be measured says why.
  const queries_without = [{ query_id: "none", query_input: {}, relevant_documents: [right[0]] }];
  await send(page, "POST", "/v1/retrievers/evaluations/datasets", { dataset_name: "what nobody asks", queries: queries_without }, namespace);
  await open(page, "Evaluations");
  await page.getByRole("link", { name: "Comparison" }).click();
  await page.getByLabel("Dataset").selectOption("what nobody asks");
  await page.getByLabel("One retriever").selectOption({ label: "second-best" });
  await page.getByLabel("Another retriever").selectOption({ label: "picture-book-search" });
  await page.getByRole("button", { name: "Measure now" }).click();
  await expect(page.getByText(/^The last evaluation of second-best failed: no query could be measured/)).toBeVisible();
  await accessible(page);
  await picture(page, "comparison-failed");
  await phone(page);
  await page.getByLabel("Dataset").selectOption("what children ask");
  await page.getByLabel("One retriever").selectOption({ label: "second-best" });
  await page.getByLabel("Another retriever").selectOption({ label: "picture-book-search" });
  await expect(page.getByText("second-best was not measured with this dataset")).toBeVisible();
  await accessible(page);
  await page.getByRole("button", { name: "Measure now" }).click();
  await expect(page.getByText(/^picture-book-search puts right documents higher than second-best/)).toBeVisible();
  await expect(page.getByRole("img", { name: "Two retrievers compared" })).toBeVisible();
  await page.getByLabel("Results that are looked at").selectOption("1");
  await expect(page).toHaveURL(/k=1/);
  await accessible(page);
  await steady(page);
  await picture(page, "comparison");
  await phone(page);

  // A dataset of what people did.
  const execution_id = (await send(page, "POST", `/v1/retrievers/${id}/execute`, { inputs: { query: questions[0] } }, namespace)).execution_id;
  await send(page, "POST", "/v1/retrievers/interactions", { feature_id: right[0], interaction_type: ["click"], position: 0, execution_id, retriever_id: id, query_snapshot: { query: questions[0] } }, namespace);
  await page.getByRole("link", { name: "Datasets" }).click();
  await page.getByRole("button", { name: "Learn from what people did" }).first().click();
  const learn = page.getByRole("dialog", { name: "Learn a dataset from what people did" });
  await learn.getByLabel("Retriever").selectOption({ label: "picture-book-search" });
  await learn.getByLabel("Name", { exact: true }).fill("what children clicked");
  await learn.getByLabel("Acts that a query needs").fill("1");
  await accessible(page);
  await learn.getByRole("button", { name: "Create", exact: true }).click();
  await expect(page.getByRole("row", { name: /what children clicked/ })).toBeVisible();
  await accessible(page);
  await steady(page);
  await picture(page, "datasets");
  await phone(page);
  const made = (copy.retriever as { retriever_id: string }).retriever_id;
  await send(page, "DELETE", `/v1/retrievers/${made}`, undefined, namespace);
  expect(faults).toEqual([]);
});
