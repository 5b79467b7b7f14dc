// Documents as last heard of: those that were asked for, a page at a time, and those that the server told of; and how
// many there are.

import { call } from "./api.js";

const PAGE = 200;
const LONGEST_PAGE = 1000;
const AT_WORK = 50;
const RECOUNT_MS = 2000;

/**
 * `counts` are of what the filters leave, `all` of everything, both by standing; null until they are known. `next` asks
 * for what comes after the document `last`; null: all that the filters leave is here.
 */
export const shelf = { documents: new Map(), maxBytes: Infinity, counts: null, all: null, next: null, last: null };
const listeners = [];
let filters = {};
// The newest question of the page: what was asked before it is not waited for any more.
let question = 0;
// What changed while a listing was under way: the listing may be older than that.
let fresh = new Map();
const gone = new Set();

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

/** In the order of the server: by collection, then by path. */
export const inOrder = (a, b) =>
  (a.collection < b.collection ? -1 : a.collection > b.collection ? 1 : a.path < b.path ? -1 : a.path > b.path ? 1 : 0);

/** Whether a document stands among the pages that are here; one further on waits for its own. */
export const isReached = (item) => !shelf.next || inOrder(item, shelf.last) <= 0;

const page = (asked) => call(`/v1/documents?${new URLSearchParams(Object.entries(asked).filter(([, value]) => value))}`);

function take(found) {
  for (const item of found) if (!gone.has(item.id)) shelf.documents.set(item.id, fresh.get(item.id) ?? item);
}

function reach({ documents, next }) {
  take(documents);
  shelf.next = next;
  shelf.last = documents.at(-1) ?? shelf.last;
}

// --- what is asked for ----------------------------------------------------------------------------------------------

/** Ask for everything anew, as far as it was here. */
export async function load() {
  const mine = ++question;
  fresh = new Map();
  const reached = Math.min(LONGEST_PAGE, Math.max(PAGE, shelf.documents.size));
  const [first, atWork] = await Promise.all([page({ ...filters, limit: reached }), page({ standing: "working", limit: AT_WORK })]);
  if (mine !== question) return;
  shelf.documents = new Map(fresh);
  shelf.maxBytes = first.max_bytes;
  shelf.counts = first.counts;
  shelf.all = atWork.counts;
  take(atWork.documents);
  reach(first);
  changed();
}

/** What every list is narrowed to from now on: {collection, q, standing}. */
export const setFilters = (wanted) => { filters = wanted; };

/** Ask for the first page of what the filters leave. */
export async function narrow() {
  const mine = ++question;
  const first = await page({ ...filters, limit: PAGE });
  if (mine !== question) return;
  shelf.counts = first.counts;
  reach(first);
  changed();
}

let asking = null;
/** Ask for the next page, where there is one; `whole`: a long one, as all are wanted. */
export function more(whole) {
  const mine = question;
  asking ??= page({ ...filters, after: shelf.next, limit: whole ? LONGEST_PAGE : PAGE })
    .then((found) => { if (mine === question) reach(found); })
    .finally(() => { asking = null; changed(); });
  return asking;
}

/** Ask for all that the filters leave. */
export async function everything() {
  while (shelf.next) await more(true);
}

let recounting;
function recount() {
  recounting ??= setTimeout(async () => {
    recounting = null;
    const mine = question;
    const { collection, q } = filters;
    const asked = [page({ limit: 1 }), collection || q ? page({ collection, q, limit: 1 }) : null];
    const [all, some] = await Promise.all(asked).catch(() => []); // the next change will ask again
    if (!all || mine !== question) return;
    shelf.all = all.counts;
    shelf.counts = (some ?? all).counts;
    changed();
  }, RECOUNT_MS);
}

// --- what the server tells ------------------------------------------------------------------------------------------

export function put(item) {
  fresh.set(item.id, item);
  shelf.documents.set(item.id, item);
  recount();
  changed();
}

/** A document is gone, and what came in it. */
export function drop(id) {
  gone.add(id);
  fresh.delete(id);
  shelf.documents.delete(id);
  for (const child of [...shelf.documents.values()]) if (child.parent_id === id) drop(child.id);
  recount();
  changed();
}
