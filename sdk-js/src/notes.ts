/** What the server says of the fields of a form: beside each what is wrong with it, else what it is for. */

const all = (root: Document): Map<string, HTMLElement> => {
  // Those of files are told where they are picked.
  const found = root.querySelectorAll<HTMLElement>("form[data-search] .note[id]");
  return new Map([...found].filter((note) => !note.closest(".file")).map((note) => [note.id, note]));
};

/** Takes over what a page that was fetched says of the fields of the form that is there. */
export function notes(page: Document): void {
  const [there, told] = [all(document), all(page)];
  for (const id of new Set([...there.keys(), ...told.keys()])) {
    const before = there.get(id);
    const after = told.get(id);
    const name = id.replace(/-note$/, "");
    const field = document.getElementById(name);
    for (const about of ["aria-describedby", "aria-invalid"]) {
      const value = page.getElementById(name)?.getAttribute(about);
      if (value) field?.setAttribute(about, value);
      else field?.removeAttribute(about);
    }
    if (!after) before?.remove();
    else if (before) before.replaceWith(document.adoptNode(after));
    else (field?.closest(".bar") ?? field)?.after(document.adoptNode(after));
  }
}
