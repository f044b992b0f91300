// The sign-in script of a hosted app: window.LoupeAuth and <loupe-user-button>. No dependency, no inline style or script.
(() => {
  "use strict";
  const script = document.currentScript;
  const before = window.LoupeAuth;
  if (before && before.version) return;
  let config = {};
  try {
    config = JSON.parse((script && script.dataset.config) || "{}");
  } catch {
    // A page that was saved and opened elsewhere.
  }
  window.__LOUPE__ = config;

  const channel = "BroadcastChannel" in window ? new BroadcastChannel("loupe-auth") : null;
  const tell = () => channel && channel.postMessage(user ? user.id : null);
  let user = null;
  let ready = false;
  let waiting = [];

  const call = (callback) => {
    try {
      callback(LoupeAuth);
    } catch (error) {
      // One caller's mistake must not keep the others waiting.
      setTimeout(() => { throw error; });
    }
  };

  const load = async () => {
    const was = user ? user.id : null;
    try {
      const answer = await fetch("/_auth/session", { credentials: "same-origin", cache: "no-store" });
      const session = answer.ok ? await answer.json() : {};
      user = session.user || null;
    } catch {
      // Offline: what was known stays.
    }
    const changed = ready && was !== (user ? user.id : null);
    if (!ready) {
      ready = true;
      const callbacks = waiting;
      waiting = [];
      callbacks.forEach(call);
    }
    if (changed || !was) document.dispatchEvent(new CustomEvent("loupe-auth", { detail: { user } }));
    return changed;
  };

  const here = () => location.pathname + location.search + location.hash;
  const show = (page, options) => {
    const back = (options && options.returnTo) || here();
    const popup = Boolean(options && options.popup);
    const query = new URLSearchParams({ return_to: popup ? "/_auth/done" : back });
    const address = "/_auth/" + page + "?" + query;
    if (popup) {
      const left = Math.max(0, screenX + (outerWidth - 440) / 2);
      const opened = open(address, "loupe-auth", "popup,width=440,height=640,left=" + left + ",top=" + (screenY + 80));
      if (opened) return;
    }
    location.assign("/_auth/" + page + "?" + new URLSearchParams({ return_to: back }));
  };

  const LoupeAuth = {
    version: 1,
    get isSignedIn() { return user !== null; },
    get user() { return user; },
    onReady(callback) {
      if (typeof callback !== "function") return;
      if (ready) queueMicrotask(() => call(callback));
      else waiting.push(callback);
    },
    showSignIn(options) { show("sign-in", options); },
    showSignUp(options) { show("sign-up", options); },
    showPasskeys(options) { show("passkeys", options); },
    showSessions(options) { show("sessions", options); },
    showAccount(options) { show("account", options); },
    async signOut(options) {
      const everywhere = Boolean(options && options.everywhere);
      await fetch("/_auth/sign-out", {
        method: "POST",
        credentials: "same-origin",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ everywhere }),
      });
      user = null;
      tell();
      location.reload();
    },
  };
  // Callbacks that a page left before this script came.
  if (Array.isArray(before)) before.forEach((callback) => LoupeAuth.onReady(callback));
  LoupeAuth.push = LoupeAuth.onReady;
  window.LoupeAuth = LoupeAuth;

  if (channel) {
    channel.onmessage = async (event) => {
      // Another tab signed in or out.
      if (ready && event.data !== (user ? user.id : null)) await load();
    };
  }

  if (location.pathname === "/_auth/done") {
    load().then(() => { tell(); window.close(); });
    return;
  }
  load().then(tell);

  const css = `:host{display:inline-block;position:relative;font:500 14px/1.2 system-ui,sans-serif}
button{font:inherit;color:inherit;cursor:pointer;border:1px solid color-mix(in srgb,currentColor 25%,transparent);border-radius:var(--loupe-radius,8px);background:var(--loupe-background,transparent);padding:8px 14px;min-height:36px}
button:focus-visible{outline:2px solid var(--loupe-primary,#3b5bdb);outline-offset:2px}
.face{border-radius:50%;width:36px;height:36px;padding:0;overflow:hidden;background:var(--loupe-primary,#3b5bdb);color:#fff;border:0}
.face img{width:100%;height:100%;object-fit:cover}
[popover]{position:fixed;inset:auto;margin:0;box-sizing:border-box;min-width:200px;max-width:calc(100vw - 16px);max-height:calc(100vh - 16px);overflow:auto;border:1px solid #8884;border-radius:10px;padding:12px;background:Canvas;color:CanvasText;box-shadow:0 12px 32px -12px #0005}
p{margin:0 0 4px;overflow-wrap:anywhere}p+p{font-weight:400;opacity:.75;margin-bottom:12px}`;

  class UserButton extends HTMLElement {
    connectedCallback() {
      if (!this.shadowRoot) {
        const root = this.attachShadow({ mode: "open" });
        const sheet = new CSSStyleSheet();
        sheet.replaceSync(css);
        root.adoptedStyleSheets = [sheet];
        this.draw = this.draw.bind(this);
        this.place = this.place.bind(this);
      }
      document.addEventListener("loupe-auth", this.draw);
      for (const moved of ["scroll", "resize"]) addEventListener(moved, this.place, true);
      LoupeAuth.onReady(this.draw);
    }
    disconnectedCallback() {
      document.removeEventListener("loupe-auth", this.draw);
      for (const moved of ["scroll", "resize"]) removeEventListener(moved, this.place, true);
    }
    // An open menu hangs in the window itself, whatever its button hangs in: below the face, above where no room is left, inside always.
    place() {
      const { face, menu } = this;
      if (!menu || !menu.getClientRects().length) return;
      const at = face.getBoundingClientRect();
      const { width, height } = menu.getBoundingClientRect();
      const inside = (wanted, room) => Math.max(8, Math.min(wanted, room - 8)) + "px";
      const below = at.bottom + 8;
      const above = at.top - 8 - height;
      menu.style.left = inside(at.right - width, document.documentElement.clientWidth - width);
      menu.style.top = inside(below + height > innerHeight && above > 0 ? above : below, innerHeight - height);
    }
    draw() {
      const make = (tag, text, attributes) => {
        const element = document.createElement(tag);
        if (text) element.textContent = text;
        for (const name in attributes) element.setAttribute(name, attributes[name]);
        return element;
      };
      const root = this.shadowRoot;
      if (!user) {
        const button = make("button", config.signIn || "Sign in", { type: "button", part: "button" });
        button.onclick = () => LoupeAuth.showSignIn();
        root.replaceChildren(button);
        return;
      }
      const name = user.name || user.email;
      const letter = name.slice(0, 1).toUpperCase();
      const face = make("button", user.avatar_url ? "" : letter, {
        type: "button", part: "button", class: "face", popovertarget: "menu", "aria-label": "Account of " + name,
      });
      if (user.avatar_url) {
        const picture = make("img", "", { src: user.avatar_url, alt: "", referrerpolicy: "no-referrer" });
        // Gone, or not allowed by the policy of the page.
        picture.onerror = () => { face.textContent = letter; };
        face.append(picture);
      }
      const menu = make("div", "", { id: "menu", popover: "", part: "menu" });
      // It is shown, and so has a size, before the next frame is drawn.
      menu.addEventListener("beforetoggle", () => requestAnimationFrame(this.place));
      Object.assign(this, { face, menu });
      const out = make("button", config.signOut || "Sign out", { type: "button" });
      out.onclick = () => LoupeAuth.signOut();
      menu.append(make("p", name), make("p", user.email), out);
      const lead = (words, go) => {
        const button = make("button", words, { type: "button" });
        button.onclick = () => go();
        out.before(button, " ");
      };
      if (config.passkeys) lead("Passkeys", LoupeAuth.showPasskeys);
      lead("Sessions", LoupeAuth.showSessions);
      lead("Your account", LoupeAuth.showAccount);
      root.replaceChildren(face, menu);
    }
  }
  if (!customElements.get("loupe-user-button")) customElements.define("loupe-user-button", UserButton);
})();
