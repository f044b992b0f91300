/** Pages that are fetched to take something out of them. */

/** The page of a reply. A style is for the document of its own reply: the policy of this one refuses it, and says so each time. */
export function page(text: string): Document {
  return new DOMParser().parseFromString(text.replace(/<style\b[^]*?<\/style>/gi, ""), "text/html");
}
