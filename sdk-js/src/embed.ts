/**
 * `<loupe-search page="films" query="noir" label="Search our films"></loupe-search>`: a public search page within another
 * site. The page comes in a frame of its own origin, as high as what it shows, so neither site reaches into the other.
 */

/** What the framed page tells. */
interface Told {
  loupe?: unknown;
  height?: unknown;
}

/** Heights beyond it are a mistake of somebody. */
const HIGHEST_PX = 20_000;

const home = new URL(document.currentScript instanceof HTMLScriptElement ? document.currentScript.src : location.href).origin;

class LoupeSearch extends HTMLElement {
  static readonly observedAttributes = ["page", "query", "label"];
  private readonly frame = document.createElement("iframe");

  constructor() {
    super();
    const style = document.createElement("style");
    style.textContent = ":host{display:block;min-height:5rem}iframe{display:block;width:100%;height:24rem;border:0;color-scheme:normal}";
    this.frame.loading = "lazy";
    // Searches, and results in tabs of their own; the frame steers the site around it nowhere.
    this.frame.setAttribute("sandbox", "allow-scripts allow-same-origin allow-forms allow-popups allow-popups-to-escape-sandbox");
    this.attachShadow({ mode: "open" }).append(style, this.frame);
  }

  connectedCallback(): void {
    addEventListener("message", this.hear);
    this.show();
  }

  disconnectedCallback(): void {
    removeEventListener("message", this.hear);
  }

  attributeChangedCallback(name: string, old: string | null, now: string | null): void {
    if (this.isConnected && old !== now) this.show();
  }

  private show(): void {
    const page = this.getAttribute("page") ?? "";
    this.frame.title = this.getAttribute("label") ?? "Search";
    const url = new URL(`/r/${encodeURIComponent(page)}/embed`, home);
    const query = this.getAttribute("query");
    if (query) url.searchParams.set("q", query);
    if (page && this.frame.src !== url.href) this.frame.src = url.href;
  }

  private readonly hear = (event: MessageEvent<Told>): void => {
    if (event.origin !== home || event.source !== this.frame.contentWindow || event.data?.loupe !== "height") return;
    const height = Number(event.data.height);
    if (height > 0 && height <= HIGHEST_PX) this.frame.style.height = `${Math.ceil(height)}px`;
  };
}

if (!customElements.get("loupe-search")) customElements.define("loupe-search", LoupeSearch);
