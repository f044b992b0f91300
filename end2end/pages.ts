import type { Page } from "@playwright/test";
import { send, url } from "./journeys/help.ts";

/** Members of a request or of an answer. */
export type Members = Record<string, unknown>;

/** A page over the demo: a copy of one of its retrievers, published while the journey lasts. */
export async function onPage(page: Page, source: string, published: (demo: Members) => Members, journey: (address: string) => Promise<void>): Promise<void> {
  const namespaces = (await send(page, "POST", "/v1/namespaces/list", {})).results as { namespace_id: string; namespace_name: string }[];
  const namespace = namespaces.find((one) => one.namespace_name === "demo")?.namespace_id ?? "";
  const listed = (await send(page, "POST", "/v1/retrievers/list", {}, namespace)).results as { retriever_id: string; retriever_name: string }[];
  const original = listed.find((one) => one.retriever_name === source)?.retriever_id;
  const pages = (await send(page, "GET", "/v1/retrievers/published", undefined, namespace)).results as { retriever_id: string; display_config: Members }[];
  const { retriever_config: _, seo: __, ...demo } = pages.find((one) => one.retriever_id === original)?.display_config ?? {};
  const name = `journey-${Math.random().toString(36).slice(2, 10)}`;
  const copy = await send(page, "POST", `/v1/retrievers/${original}/clone`, { retriever_name: name }, namespace);
  const id = (copy.retriever as { retriever_id: string }).retriever_id;
  try {
    await send(page, "POST", `/v1/retrievers/${id}/publish`, { public_name: name, ...published(demo) }, namespace);
    await journey(`${url()}/r/${name}`);
  } finally {
    await send(page, "DELETE", `/v1/retrievers/${id}`, undefined, namespace);
  }
}

/** The demo's page as it is. */
export const byWords = (demo: Members): Members => ({ display_config: demo });

/** As many results at once as a hand has fingers. */
export const fiveAtOnce = (demo: Members): Members => ({ display_config: demo, rate_limit_config: { max_results_per_query: 5 } });
