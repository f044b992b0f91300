// Shows what holds the words, and opens what the address names. Without this file everything is shown.
const input = document.querySelector("[data-find]");
const links = [...document.querySelectorAll("nav li")];
input.hidden = false;
input.addEventListener("input", () => {
  const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
  for (const link of links) {
    const entry = document.getElementById(link.firstChild.hash.slice(1));
    const text = entry.querySelector("summary").textContent.toLowerCase();
    link.hidden = entry.hidden = !words.every((word) => text.includes(word));
  }
  for (const section of document.querySelectorAll("main section")) {
    section.hidden = ![...section.querySelectorAll("details")].some((entry) => !entry.hidden);
  }
});
const open = () => {
  const named = location.hash && document.getElementById(location.hash.slice(1));
  if (named) named.open = true;
};
addEventListener("hashchange", open);
open();
