// A search page with sign-in. `loupe.js` is the helper for apps of @loupe/sdk: it asks `/api`, the server's API as far as the app's
// owner opened it, with the visitor's session. No key is in the browser.
import { LoupeApp } from "./loupe.js";

const loupe = new LoupeApp();
const at = (id) => document.getElementById(id);
const say = (text) => { at("state").textContent = text; };
let retrievers = [];
let running;

// The retriever's input that takes words: the one called query, else the first text. One without is searched by other means.
const inputOf = (retriever) => {
  const texts = Object.entries(retriever.input_schema ?? {}).filter(([, field]) => ["text", "string"].includes(field.type));
  return (texts.find(([name]) => name === "query") ?? texts[0])?.[0];
};

const first = (one, names) => names.map((name) => one[name]).find((text) => typeof text === "string" && text) ?? "";

const card = (hit) => {
  const item = document.createElement("li");
  const images = (hit.document_blobs ?? []).filter((blob) => blob.type === "image" && blob.presigned_url);
  const image = images.find((blob) => blob.role === "thumbnail") ?? images[0];
  if (image) item.append(Object.assign(new Image(), { src: image.presigned_url, alt: "", loading: "lazy" }));
  const title = document.createElement("h2");
  title.textContent = first(hit, ["title", "name", "filename", "headline", "label"]) || hit.document_id;
  const text = document.createElement("p");
  text.textContent = first(hit, ["text", "description", "caption", "content", "body"]).slice(0, 220);
  item.append(title, text);
  return item;
};

const search = async (words) => {
  const retriever = retrievers.find((one) => one.retriever_id === at("retriever").value) ?? retrievers[0];
  if (!retriever || !words) return;
  // The earlier search is given up, so that a slow answer never replaces a newer one.
  running?.abort();
  const mine = (running = new AbortController());
  say("Searching…");
  try {
    const inputs = { [inputOf(retriever)]: words };
    const hits = await loupe.search(retriever.retriever_id, inputs, { pictures: true, signal: mine.signal });
    at("found").replaceChildren(...hits.map(card));
    say(hits.length === 1 ? "1 result" : hits.length ? `${hits.length} results` : "Nothing was found. Try other words.");
  } catch (error) {
    if (mine.signal.aborted) return;
    at("found").replaceChildren();
    say(error.message);
  }
};

// Whoever is not signed in is shown the door instead of the search.
const open = (isOpen) => {
  at("search").hidden = !isOpen;
  at("door").hidden = isOpen;
  if (!isOpen) at("found").replaceChildren();
};

const begin = async ({ hasSignIn, user }) => {
  document.querySelector("loupe-user-button").hidden = !hasSignIn;
  if (hasSignIn && !user) {
    open(false);
    say("Sign in to search.");
    return;
  }
  open(true);
  say("");
  try {
    retrievers = (await loupe.retrievers()).filter(inputOf);
  } catch (error) {
    say(error.message);
    return;
  }
  at("choice").hidden = retrievers.length < 2;
  at("retriever").replaceChildren(...retrievers.map((one) => new Option(one.retriever_name, one.retriever_id)));
  if (!retrievers.length) say("There is nothing to search with yet: make a retriever that takes words in the console.");
  // What somebody has typed meanwhile stays.
  const words = new URLSearchParams(location.search).get("q") ?? "";
  at("words").value ||= words;
  search(words);
};

at("search").addEventListener("submit", (event) => {
  event.preventDefault();
  const words = at("words").value.trim();
  history.pushState(null, "", `?${new URLSearchParams({ q: words })}`);
  search(words);
});
at("retriever").addEventListener("change", () => search(at("words").value.trim()));
at("in").addEventListener("click", () => loupe.showSignIn());
at("up").addEventListener("click", () => loupe.showSignUp());
addEventListener("popstate", () => {
  at("words").value = new URLSearchParams(location.search).get("q") ?? "";
  search(at("words").value);
});

// Until somebody gives it a better name, the app is called as its address: reading-room is Reading room.
const name = location.hostname.split(".")[0].split("--")[0].replaceAll("-", " ");
document.title = at("name").textContent = name.charAt(0).toUpperCase() + name.slice(1);

loupe.onSession(begin);
