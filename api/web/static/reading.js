// The reading pane: one passage highlighted in the text around it, and for a PDF the page with its box.

import { call } from "./api.js";
import { copy, find, node, number, say, since, when, words } from "./dom.js";
import { boxesOn, hasPictures, pagePicture } from "./pictures.js";

const pane = find("#reading");
const body = find("#reading-body");
let opener = null;
let loading = null;

// What an opened passage is known by: its place now, and what was pinned when it was cited.
const PINNED = ["revision", "start", "end"];
const KEYS = ["document", "passage", ...PINNED];
// Where nothing can be opened, these words and the quote are all there is to show.
const SHUT = new Set(["gone", "deleted", "withheld"]);

const keysOf = (item) => ({
  document: item.document_id,
  passage: item.chunk_id,
  ...(item.revision && Object.fromEntries(PINNED.map((key) => [key, item[key]]))),
});

function address(item) {
  const url = new URL(location.href);
  for (const key of KEYS) url.searchParams.delete(key);
  for (const [key, value] of Object.entries(item ? keysOf(item) : {})) url.searchParams.set(key, value);
  return url;
}

function facts(passage) {
  const { document: source } = passage;
  const rows = [[words.document_path, source.path], [words.col_collection, source.collection]];
  if (passage.heading_path.length) rows.push(["§", passage.heading_path.join(" › ")]);
  const older = passage.revision < source.revision && say("revision_older", { revision: number(passage.revision), newest: number(source.revision) });
  rows.push([words.col_revision, older || number(passage.revision)]);
  rows.push([source.effective_from || source.effective_to ? words.col_effective : words.col_changed, when(source)]);
  return node("dl", {}, ...rows.flatMap(([name, value]) => [node("dt", {}, name), node("dd", {}, value)]));
}

function picture({ document: source, page, boxes, revision }) {
  if (!hasPictures(source) || !page) return null;
  const frame = pagePicture(source, page, {}, revision);
  frame.append(...boxesOn(page, boxes));
  return frame;
}

/** Where the quote stands in the passage's text: as pinned, in the revision that it was pinned in. */
function span(passage, item) {
  const start = item.start - passage.start;
  const end = item.end - passage.start;
  return item.revision === passage.revision && start >= 0 && end <= passage.text.length && start < end
    ? [start, end] : [0, passage.text.length];
}

function show(passage, item) {
  find("#reading-title").textContent = passage.document.title;
  const [start, end] = span(passage, item);
  const around = (text) => node("span", { class: "around" }, text);
  const mark = node("mark", { id: "passage" }, passage.text.slice(start, end));
  body.replaceChildren(
    facts(passage),
    node("div", { class: "passage" },
      around(passage.before ? `${passage.before}\n\n` : ""), passage.text.slice(0, start), mark, passage.text.slice(end),
      around(passage.after ? `\n\n${passage.after}` : "")),
    picture(passage) ?? "");
  // Scroll the pane alone: the page behind it stays where the reader was.
  pane.scrollTop = mark.offsetTop - pane.clientHeight / 3;
}

function unfold() {
  pane.hidden = false;
  document.body.classList.add("is-reading");
}

async function load(item) {
  const query = item.revision ? `?revision=${item.revision}` : "";
  const request = call(`/v1/documents/${item.document_id}/passages/${item.chunk_id}${query}`);
  loading = request;
  unfold();
  try {
    const passage = await request;
    if (loading !== request) return; // another one was opened meanwhile
    show(passage, item);
  } catch (error) {
    if (loading !== request) return;
    find("#reading-title").textContent = words.reading_title;
    body.replaceChildren(node("p", { class: "error" }, error.status === 404 ? words.passage_gone : error.message));
  }
  pane.focus({ preventScroll: true });
}

/** What is left of a citation whose passage cannot be opened any more. */
function showShut(item) {
  loading = null;
  unfold();
  find("#reading-title").textContent = item.title;
  body.replaceChildren(
    node("p", { class: "outcome" }, since(item)),
    item.quote ? node("blockquote", { class: "pinned" }, item.quote) : "",
    item.revision ? node("p", { class: "hint" }, say("pinned_at", { document: item.document, revision: number(item.revision) })) : "");
  pane.focus({ preventScroll: true });
}

function hide() {
  loading = null;
  pane.hidden = true;
  document.body.classList.remove("is-reading");
  opener?.focus();
  opener = null;
}

/** Open the passage of a hit or citation and give it an address of its own, so that Back closes it again and a colleague
    can open it. */
export function openPassage(item, from) {
  opener = from ?? document.activeElement;
  if (SHUT.has(item.standing) || item.origin === "peer") return showShut(item);
  history[pane.hidden ? "pushState" : "replaceState"]({ passage: true }, "", address(item));
  return load(item);
}

function close() {
  hide();
  if (history.state?.passage) history.back();
  else history.replaceState(null, "", address());
}

function follow() {
  const query = new URLSearchParams(location.search);
  const [document_id, chunk_id, ...pinned] = KEYS.map((key) => query.get(key));
  const [revision, start, end] = pinned.map(Number);
  if (document_id && chunk_id) load({ document_id, chunk_id, revision, start, end });
  else if (!pane.hidden) hide();
}

find("#reading-close").addEventListener("click", close);
find("#reading-link").addEventListener("click", () => {
  const url = new URL("/", location.origin);
  const query = new URLSearchParams(location.search);
  for (const key of KEYS) if (query.has(key)) url.searchParams.set(key, query.get(key));
  copy(url.href, words.link_copied);
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && !pane.hidden) close();
});
addEventListener("popstate", follow);
follow();
