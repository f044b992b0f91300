/**
 * Files that are searched with: chosen, dropped on the page or pasted. Pictures are made smaller here before they are
 * sent: models look at a few hundred pixels, and a photograph has thousands.
 */

import { announce } from "./announce";

const SIDE_PX = 1024;
const PREVIEW_PX = 96;
const QUALITY = 0.85;
/** What the server takes. */
const LARGEST = 8 * 1024 * 1024;
/** Kinds that are sent as they are where they are small already. */
const PLAIN = ["image/jpeg", "image/png", "image/webp", "image/gif"];

/** One file, ready to be sent. */
interface Picked {
  chosen: File;
  sent: File;
  /** A small picture of it; empty for what is no picture. */
  preview: string;
}

/** What is picked on a page. */
export interface Picks {
  /** What is sent, by the name of its input. */
  sent(): [string, File][];
  /** Names what is picked now; empty for nothing. */
  mark(): string;
  /** Picks again what a mark names, or nothing. */
  restore(mark: string): void;
}

function drawn(bitmap: ImageBitmap, side: number): HTMLCanvasElement {
  const scale = Math.min(1, side / Math.max(bitmap.width, bitmap.height));
  const canvas = document.createElement("canvas");
  canvas.width = Math.max(1, Math.round(bitmap.width * scale));
  canvas.height = Math.max(1, Math.round(bitmap.height * scale));
  const context = canvas.getContext("2d");
  if (!context) return canvas;
  // What lets light through stands on white.
  context.fillStyle = "#fff";
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.drawImage(bitmap, 0, 0, canvas.width, canvas.height);
  return canvas;
}

async function prepared(chosen: File): Promise<Picked> {
  const whole: Picked = { chosen, sent: chosen, preview: "" };
  if (!chosen.type.startsWith("image/")) return whole;
  try {
    const bitmap = await createImageBitmap(chosen);
    const preview = drawn(bitmap, PREVIEW_PX).toDataURL("image/jpeg", QUALITY);
    const small = Math.max(bitmap.width, bitmap.height) <= SIDE_PX && PLAIN.includes(chosen.type);
    if (small) return { ...whole, preview };
    const canvas = drawn(bitmap, SIDE_PX);
    const smaller = await new Promise<Blob | null>((done) => canvas.toBlob(done, "image/jpeg", QUALITY));
    if (!smaller) return { ...whole, preview };
    return { chosen, sent: new File([smaller], chosen.name, { type: "image/jpeg" }), preview };
  } catch {
    // This browser cannot read it. The server may, or says why not.
    return whole;
  }
}

/** Whether an input takes a file, by its `accept`. */
function takes(input: HTMLInputElement, file: File): boolean {
  const kinds = input.accept.split(",").map((kind) => kind.trim().toLowerCase());
  return kinds.some(
    (kind) =>
      kind === "" ||
      kind === file.type ||
      (kind.endsWith("/*") && file.type.startsWith(kind.slice(0, -1))) ||
      (kind.startsWith(".") && file.name.toLowerCase().endsWith(kind)),
  );
}

/** Takes files in this form; `changed` is told when there are others to search with. */
export function picking(form: HTMLFormElement, changed: () => void): Picks {
  const inputs = [...form.querySelectorAll<HTMLInputElement>("input[type=file]")];
  let picks = new Map<HTMLInputElement, Picked>();
  /** Everything that was picked on this page, for the way back. */
  const marks = new Map<string, Map<HTMLInputElement, Picked>>();
  let mark = "";

  const show = (input: HTMLInputElement): void => {
    const control = input.parentElement;
    const picked = picks.get(input);
    const focused = control?.contains(document.activeElement) ?? false;
    control?.querySelector(".picked")?.remove();
    input.hidden = picked !== undefined;
    if (!picked) {
      if (focused) input.focus();
      return;
    }
    const chip = document.createElement("div");
    chip.className = "picked";
    if (picked.preview !== "") {
      const image = document.createElement("img");
      image.src = picked.preview;
      image.alt = "";
      chip.append(image);
    }
    const name = document.createElement("span");
    name.textContent = picked.chosen.name;
    const remove = document.createElement("button");
    remove.type = "button";
    remove.textContent = "×";
    remove.setAttribute("aria-label", `Remove ${picked.chosen.name}`);
    remove.addEventListener("click", () => {
      set(new Map([...picks].filter(([other]) => other !== input)));
      changed();
    });
    chip.append(name, remove);
    input.after(chip);
    if (focused) remove.focus();
  };

  /** Makes these the files that are picked; the inputs themselves hold them too, for what the browser checks. */
  const set = (next: Map<HTMLInputElement, Picked>, known?: string): void => {
    picks = next;
    mark = known ?? (next.size > 0 ? `${Math.round(performance.timeOrigin)}-${marks.size + 1}` : "");
    if (mark !== "") marks.set(mark, next);
    for (const input of inputs) {
      const picked = picks.get(input);
      const held = new DataTransfer();
      if (picked) held.items.add(picked.chosen);
      input.files = held.files;
      show(input);
    }
  };

  const note = (input: HTMLInputElement): Element | null => input.parentElement?.querySelector(".note") ?? null;
  const hints = new Map(inputs.map((input) => [input, note(input)?.textContent ?? ""]));
  /** What is wrong with a file, or what the input is for. */
  const tell = (input: HTMLInputElement, fault: string): void => {
    const place = note(input);
    place?.classList.toggle("bad", fault !== "");
    if (place) place.textContent = fault || (hints.get(input) ?? "");
    if (fault !== "") announce(fault);
  };
  const refuse = (input: HTMLInputElement, fault: string): void => {
    // The browser shows what it was given, be it taken or not.
    set(picks, mark);
    tell(input, fault);
  };

  const pick = async (input: HTMLInputElement, file: File): Promise<void> => {
    if (!takes(input, file)) return refuse(input, "This page takes no such file.");
    const picked = await prepared(file);
    if (picked.sent.size > LARGEST) return refuse(input, "This file is too large: 8 MB is the most.");
    tell(input, "");
    set(new Map(picks).set(input, picked));
    announce(`${file.name} chosen`);
    changed();
  };

  /** The input for the first of these files that any of them takes. */
  const place = (files: FileList, target: EventTarget | null): void => {
    const aimed = inputs.find((input) => target instanceof Node && input.parentElement?.contains(target));
    for (const file of files) {
      const input = aimed ?? inputs.find((one) => takes(one, file));
      if (input) return void pick(input, file);
    }
    const first = inputs[0];
    if (first && files.length > 0) refuse(first, "This page takes no such file.");
  };

  const hasFiles = (data: DataTransfer | null): boolean => data?.types.includes("Files") ?? false;
  const wait = (waits: boolean): void => void form.toggleAttribute("data-drop", waits);
  if (inputs.length > 0) {
    for (const input of inputs) {
      input.addEventListener("change", () => {
        const file = input.files?.[0];
        if (file) void pick(input, file);
      });
    }
    document.addEventListener("dragover", (event) => {
      if (!hasFiles(event.dataTransfer)) return;
      event.preventDefault();
      wait(true);
    });
    document.addEventListener("dragleave", (event) => {
      // Only what leaves the window has left.
      if (event.relatedTarget === null) wait(false);
    });
    document.addEventListener("drop", (event) => {
      wait(false);
      if (!event.dataTransfer || !hasFiles(event.dataTransfer)) return;
      event.preventDefault();
      place(event.dataTransfer.files, event.target);
    });
    document.addEventListener("paste", (event) => {
      const data = event.clipboardData;
      // Text that comes with its picture is meant as text.
      if (!data || data.files.length === 0 || data.types.includes("text/plain")) return;
      event.preventDefault();
      place(data.files, null);
    });
  }

  return {
    sent: () => [...picks].map(([input, picked]) => [input.name, picked.sent]),
    mark: () => mark,
    restore: (known) => {
      if (known !== mark) set(marks.get(known) ?? new Map(), marks.has(known) ? known : "");
    },
  };
}
