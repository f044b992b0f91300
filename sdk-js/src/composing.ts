/** Words that are still being put together by an input method. */

/** Of a key that it takes for itself browsers tell this, and some of them nothing else once it has ended the word. */
const TAKEN = 229;

/** Whether what happened is a part of such a word, or the key that ends it. */
export function composing(event: Event): boolean {
  if (event instanceof KeyboardEvent) return event.isComposing || event.keyCode === TAKEN;
  return event instanceof InputEvent && event.isComposing;
}
