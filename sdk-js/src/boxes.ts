/** Boxes of which one has to be ticked: browsers can require each of them, and none of several. */

/** Says so of the first box of each group in this form, as long as none is ticked. */
export function boxes(form: HTMLFormElement): void {
  for (const group of form.querySelectorAll("[data-required]")) {
    const all = [...group.querySelectorAll<HTMLInputElement>("input[type=checkbox]")];
    all[0]?.setCustomValidity(all.some((box) => box.checked) ? "" : "Choose at least one.");
  }
}
