/** A search told stage by stage, where the page's owner wants that: a line for each stage, and the page itself at the end. */

interface Step {
  at: number;
  of: number;
  found: number | null;
  ms: number | null;
}

/** Where this form shows stages, if it does. */
const place = (form: HTMLFormElement): HTMLElement | null => ("progress" in form.dataset ? form.querySelector<HTMLElement>(".stages") : null);

/** What a search of this form asks the server for. */
export function accepted(form: HTMLFormElement): string {
  return place(form) ? "text/event-stream" : "text/html";
}

function show(area: HTMLElement, step: Step): void {
  const label = area.querySelector("summary");
  if (label) label.textContent = `Stage ${step.at} of ${step.of}`;
  const list = area.querySelector("ol");
  if (!list) return;
  while (list.children.length < step.of) list.append(document.createElement("li"));
  const line = list.children[step.at - 1];
  if (!line) return;
  line.textContent = step.found === null ? "Under way" : `${step.found} found in ${step.ms ?? 0} ms`;
}

/** The page of a reply, with its stages shown while they come. */
export async function read(form: HTMLFormElement, reply: Response): Promise<string> {
  const area = place(form);
  const isTold = reply.headers.get("content-type")?.startsWith("text/event-stream") ?? false;
  if (!area || !isTold || !reply.body) return reply.text();
  area.querySelector("ol")?.replaceChildren();
  const reader = reply.body.getReader();
  const decoder = new TextDecoder();
  let text = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) throw new Error("the search ended before its page came");
    text += decoder.decode(value, { stream: true });
    // An event ends with an empty line.
    for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
      const lines = text.slice(0, end).split("\n");
      text = text.slice(end + 2);
      const data = lines.find((line) => line.startsWith("data:"))?.slice(5);
      if (!data) continue;
      if (lines.some((line) => line.startsWith("event:") && line.endsWith("page"))) return JSON.parse(data) as string;
      show(area, JSON.parse(data) as Step);
    }
  }
}
