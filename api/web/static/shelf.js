// All documents as last heard of them.

import { call } from "./api.js";

export const shelf = { documents: new Map(), maxBytes: Infinity };
const listeners = [];
// What changed while a listing was under way: the listing may be older than that.
let fresh = new Map();

/** Have `listener` called, once a frame, after something changed. */
export const onChange = (listener) => listeners.push(listener);

let drawing = false;
export function changed() {
  if (drawing) return;
  drawing = true;
  requestAnimationFrame(() => {
    drawing = false;
    for (const listener of listeners) listener();
  });
}

export function put(item) {
  fresh.set(item.id, item);
  shelf.documents.set(item.id, item);
  changed();
}

export function drop(id) {
  shelf.documents.delete(id);
  changed();
}

export async function load() {
  fresh = new Map();
  const found = await call("/v1/documents");
  shelf.documents = new Map(found.documents.map((item) => [item.id, item]));
  for (const [id, item] of fresh) shelf.documents.set(id, item);
  shelf.maxBytes = found.max_bytes;
  changed();
}
