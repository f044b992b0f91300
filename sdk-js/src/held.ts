/** Keeps the place of those who go by keyboard when what they are at is replaced. */

/**
 * What has the focus now; what it answers gives the focus back, where it was lost, to what stands for it in `fresh`: the same
 * value of a filter, else the results themselves.
 */
export function held(): (fresh: HTMLElement) => void {
  const at = document.activeElement;
  return (fresh) => {
    if (!(at instanceof HTMLElement) || at.isConnected) return;
    const kept = [...fresh.querySelectorAll<HTMLElement>("[data-keep]")];
    // Of a chip and its value among the filters it is the value, which stays.
    const same = kept.filter((link) => link.dataset.keep === at.dataset.keep).pop();
    fresh.tabIndex = -1;
    (same ?? fresh).focus({ preventScroll: true });
  };
}
