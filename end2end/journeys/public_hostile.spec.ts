import { expect, test, type Page } from "@playwright/test";
import { start } from "../server.ts";

/** S-44. Whatever an owner or a document says, it stays text: in every field of a page, in a real browser. */
const PAYLOADS = [
  "<script>__xss=1</script>",
  "</script><script>__xss=1</script>",
  "</title><script>__xss=1</script>",
  "</style><script>__xss=1</script>",
  "</textarea><script>__xss=1</script>",
  "<img src=x onerror=__xss=1>",
  `"><img src=x onerror=__xss=1>`,
  "'><img src=x onerror=__xss=1>",
  "<svg onload=__xss=1>",
  `"><svg/onload=__xss=1>`,
  "<svg><script>__xss=1</script></svg>",
  "<svg><animate onbegin=__xss=1 attributeName=x>",
  "<body onload=__xss=1>",
  "<details open ontoggle=__xss=1>",
  "<input autofocus onfocus=__xss=1>",
  `" autofocus onfocus=__xss=1 x="`,
  "' onmouseover='__xss=1' x='",
  "<video><source onerror=__xss=1></video>",
  "<audio src=x onerror=alert(1)>",
  "<iframe srcdoc='<script>parent.__xss=1</script>'>",
  "<iframe src=javascript:parent.__xss=1>",
  "<object data=javascript:__xss=1>",
  "<embed src=javascript:__xss=1>",
  "<a href=javascript:__xss=1>x</a>",
  "[x](javascript:__xss=1)",
  `![x](x"onerror="__xss=1)`,
  "<javascript:__xss=1>",
  "javascript:__xss=1",
  "JaVaScRiPt:__xss=1",
  "java\tscript:__xss=1",
  "\u0001javascript:__xss=1",
  "data:text/html,<script>__xss=1</script>",
  "vbscript:__xss=1",
  "<base href=javascript:/__xss=1//>",
  "<meta http-equiv=refresh content=0;url=/__xss>",
  "<math><mtext><img src=x onerror=__xss=1>",
  "<!--><script>__xss=1</script>-->",
  `<p title="</noscript><svg onload=__xss=1>`,
  "red;}*{background:url(//x.invalid)}",
  "{{constructor.constructor('__xss=1')()}}",
];

/** Pages that are looked at beside one another: as many as a server of two cores searches for at once, or it would send some away. */
const TABS = 2;

/** Every field of a display configuration set to the payload. */
const display = (p: string): Record<string, unknown> => ({
  title: p,
  description: p,
  logo_url: p,
  icon_base64: p,
  seo: {
    meta_title: p, meta_description: p, keywords: [p], og_image_url: p, og_image_alt: p, og_type: p, twitter_card: p,
    twitter_site: p, twitter_creator: p, robots: p, canonical_url: p, site_name: p, author: p, locale: p, logo_url: p,
    favicon_url: p, structured_data: { type: p, additional_properties: { name: p, [p]: p } },
  },
  markdowns: [{ title: p, content: p }],
  theme: {
    primary_color: p, secondary_color: p, font_family: p, background_color: p, text_color: p, heading_font_family: p,
    surface_color: p, muted_color: p, border_color: p, border_radius: p, card_style: p, card_hover_effect: p,
  },
  inputs: [
    { field_name: "query", field_schema: { type: "text" }, input_type: "text", label: p, placeholder: p, helper_text: p, suggestions: [p], required: false },
    { field_name: "pick", field_schema: { type: "string", enum: [p] }, input_type: "select", label: p, placeholder: p, required: false, order: 1 },
    { field_name: "picks", field_schema: { type: "array", items: { type: "string", enum: [p] } }, input_type: "multiselect", label: p, required: false, order: 2 },
    { field_name: "other", field_schema: { type: "string", description: p }, input_type: p, label: p, helper_text: p, required: false, order: 3 },
    { field_name: "picture", field_schema: { type: "image" }, input_type: "image", label: p, helper_text: p, required: false, order: 4 },
  ],
  layout: { mode: p, columns: 3, gap: p },
  exposed_fields: ["title", "description", "url", "image", "tags", "meta", "date", "plain", p],
  components: {
    show_filters: true,
    result_layout: p,
    result_card: {
      layout: p, thumbnail_aspect_ratio: p, thumbnail_fit: p, show_score: true, show_find_similar: true, card_click_action: "openUrl",
      field_order: [p, "url"], card_style: p, thumbnail_field: "image", title_field: "title", card_fields: ["url", "image", "tags", "meta", "date", "plain", p],
    },
  },
  field_config: {
    url: { format: "url", format_options: { label: p, show_domain: true } },
    image: { format: "image", format_options: { label: p, aspect_ratio: p, object_fit: p } },
    tags: { format: "array", format_options: { label: p, separator: p } },
    meta: { format: "object", format_options: { label: p } },
    date: { format: "date", format_options: { label: p, date_format: p } },
    plain: { format: "text", format_options: { label: p, prefix: p, suffix: p } },
    [p]: { format: "boolean", format_options: { label: p, true_label: p, false_label: p } },
  },
  custom_cta: { label: p, markdown_content: p },
  external_links: [{ name: p, url: p }],
  template_type: p,
  field_mappings: { [p]: "title", badge: "plain", url: "url", thumbnail: "image" },
  extensions: { [p]: p, facets: ["tags", p], color_scheme: p, markdowns: p, embed: { frame_ancestors: [p] } },
  [p]: p,
});

/** The same with a template of the owner's own, which stands where its name is none of the built-in ones. */
const withTemplate = (p: string): Record<string, unknown> => {
  const plain = display(p);
  const template = {
    character: "media-search",
    picture: { field: "image", place: "beside", ratio: "2/3" },
    card: { badge: ["plain"], eyebrow: ["tags", "url"], heading: [p, "title"], line: ["date", "meta"], text: ["description"] },
    item: { eyebrow: ["url"], line: ["tags", "plain"], text: ["description", p], facts: ["meta", "date", "image"] },
  };
  return { ...plain, extensions: { ...(plain.extensions as object), template } };
};

/** And every field of a document. */
const record = (p: string): Record<string, unknown> => ({ title: p, description: p, url: p, image: p, tags: [p], meta: { kind: p }, date: p, plain: p });

/** What a page has that only a payload could have brought, or that one has done. */
async function harm(page: Page): Promise<string[]> {
  return page.evaluate(() => {
    const seen = window as unknown as { __xss?: unknown; refused?: string[] };
    const found = seen.__xss === undefined ? [] : ["a payload ran"];
    for (const element of document.querySelectorAll("*")) {
      if (/^(iframe|object|embed|base|math)$/i.test(element.nodeName)) found.push(element.nodeName);
      for (const { name, value } of element.attributes) {
        if (/^on|^style$|^srcdoc$|^http-equiv$/.test(name)) found.push(`${element.nodeName} ${name}`);
        // As browsers read addresses: without the space around them and the breaks in them.
        const address = /^(href|src|action|formaction)$/.test(name) ? value.replace(/[\u0000-\u0020]/g, "") : "";
        if (/^(javascript|vbscript|data:text)/i.test(address)) found.push(`${element.nodeName} ${name}=${value}`);
      }
    }
    return [...found, ...(seen.refused ?? [])];
  });
}

test("nothing that an owner or a document says runs on a page", async ({ context }) => {
  expect(new Set(PAYLOADS).size).toBe(40);
  const running = await start({ demo: false });
  const send = async (method: string, path: string, body: unknown, namespace = ""): Promise<Record<string, unknown>> => {
    const headers = { authorization: `Bearer ${running.key}`, "content-type": "application/json", ...(namespace ? { "x-namespace": namespace } : {}) };
    const answer = await fetch(`${running.url}${path}`, { method, headers, body: JSON.stringify(body) });
    const text = await answer.text();
    expect(answer.ok, `${method} ${path}: ${text}`).toBe(true);
    return JSON.parse(text) as Record<string, unknown>;
  };
  try {
    const namespace = String((await send("POST", "/v1/namespaces", { namespace_name: "hostile" })).namespace_id);
    const extractor = { feature_extractor_name: "passthrough_extractor", version: "v1" };
    const made = await send("POST", "/v1/collections", { collection_name: "words", source: { type: "direct_upsert" }, feature_extractor: extractor }, namespace);
    const documents: string[] = [];
    for (const payload of PAYLOADS) {
      const written = await send("POST", `/v1/collections/${made.collection_id}/documents`, record(payload), namespace);
      documents.push(String(written.document_id));
    }
    const said: string[] = [];
    // What the policy had to stop had got into the page.
    await context.addInitScript(() => {
      const seen = window as unknown as { refused: string[] };
      seen.refused = [];
      addEventListener("securitypolicyviolation", (event) => {
        if (/^(script|object|frame|base|form|style)/.test(event.effectiveDirective)) seen.refused.push(`${event.effectiveDirective}: ${event.blockedURI} ${event.sample}`);
      });
    });

    const look = async (tab: number): Promise<void> => {
      const stages = [{ stage_name: "all", config: { stage_id: "attribute_filter", parameters: { field: "title", operator: "exists" } } }];
      const optional = (type: string) => ({ type, required: false });
      const input_schema = { query: optional("text"), pick: optional("string"), picks: optional("array"), other: optional("string"), picture: optional("image") };
      const retriever = await send("POST", "/v1/retrievers", { retriever_name: `words-${tab}`, collection_identifiers: [made.collection_id], stages, input_schema }, namespace);
      const path = `/v1/retrievers/${retriever.retriever_id}/publish`;
      const home = `${running.url}/r/hostile-${tab}`;
      const page = await context.newPage();
      page.on("dialog", (dialog) => {
        said.push(dialog.message());
        void dialog.dismiss();
      });
      for (let place = tab; place < PAYLOADS.length; place += TABS) {
        const payload = PAYLOADS[place] ?? "";
        // Every other one is seen with a template of the owner's own.
        const chosen = Math.floor(place / TABS) % 2 === 0 ? display : withTemplate;
        const shown = { display_config: chosen(payload) };
        await send(place === tab ? "POST" : "PATCH", path, place === tab ? { ...shown, public_name: `hostile-${tab}` } : shown, namespace);
        const asked = `${home}?query=${encodeURIComponent(payload)}&pick=${encodeURIComponent(payload)}&f.tags=${encodeURIComponent(payload)}`;
        // The page with the results of all the payloads, a search for this one, the same in a frame, and what is said of its document.
        const framed = asked.replace(home, `${home}/embed`);
        for (const address of [home, asked, framed, `${home}/item/${documents[place]}`]) {
          const answer = await page.goto(address);
          expect(answer?.status(), `${payload} at ${address}`).toBe(200);
          await expect(page.locator("h1")).toHaveCount(1);
          expect(await harm(page), `${payload} at ${address}`).toEqual([]);
          expect(page.url()).toBe(new URL(address).href);
        }
      }
      await page.close();
    };
    await Promise.all(Array.from({ length: TABS }, (_, tab) => look(tab)));
    expect(said).toEqual([]);
  } finally {
    await running.stop();
  }
});
