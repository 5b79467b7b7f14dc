// The reading pane: one passage highlighted in the text around it, and for a PDF the page with its box.

import { call } from "./api.js";
import { copy, find, node, when, words } from "./dom.js";
import { boxesOn, hasPictures, pagePicture } from "./pictures.js";

const pane = find("#reading");
const body = find("#reading-body");
let opener = null;
let loading = null;

const address = (documentId, chunkId) => {
  const url = new URL(location.href);
  if (documentId) {
    url.searchParams.set("document", documentId);
    url.searchParams.set("passage", chunkId);
  } else {
    url.searchParams.delete("document");
    url.searchParams.delete("passage");
  }
  return url;
};

function facts(passage) {
  const { document: source } = passage;
  const rows = [[words.document_path, source.path], [words.col_collection, source.collection]];
  if (passage.heading_path.length) rows.push(["§", passage.heading_path.join(" › ")]);
  rows.push([source.effective_from || source.effective_to ? words.col_effective : words.col_changed, when(source)]);
  return node("dl", {}, ...rows.flatMap(([name, value]) => [node("dt", {}, name), node("dd", {}, value)]));
}

function picture({ document: source, page, boxes }) {
  if (!hasPictures(source) || !page) return null;
  const frame = pagePicture(source, page);
  frame.append(...boxesOn(page, boxes));
  return frame;
}

function show(passage) {
  find("#reading-title").textContent = passage.document.title;
  const mark = node("mark", { id: "passage" }, passage.text);
  body.replaceChildren(
    facts(passage),
    node("div", { class: "passage" },
      node("span", { class: "around" }, passage.before ? `${passage.before}\n\n` : ""), mark,
      node("span", { class: "around" }, passage.after ? `\n\n${passage.after}` : "")),
    picture(passage) ?? "");
  // Scroll the pane alone: the page behind it stays where the reader was.
  pane.scrollTop = mark.offsetTop - pane.clientHeight / 3;
}

async function load(documentId, chunkId) {
  const request = call(`/v1/documents/${documentId}/passages/${chunkId}`);
  loading = request;
  pane.hidden = false;
  document.body.classList.add("is-reading");
  try {
    const passage = await request;
    if (loading !== request) return; // another one was opened meanwhile
    show(passage);
  } catch (error) {
    if (loading !== request) return;
    find("#reading-title").textContent = words.reading_title;
    body.replaceChildren(node("p", { class: "error" }, error.status === 404 ? words.passage_gone : error.message));
  }
  pane.focus({ preventScroll: true });
}

function hide() {
  loading = null;
  pane.hidden = true;
  document.body.classList.remove("is-reading");
  opener?.focus();
  opener = null;
}

/** Open a passage and give it an address of its own, so that Back closes it again and a colleague can open it. */
export function openPassage(documentId, chunkId, from) {
  opener = from ?? document.activeElement;
  const url = address(documentId, chunkId);
  history[pane.hidden ? "pushState" : "replaceState"]({ passage: true }, "", url);
  return load(documentId, chunkId);
}

function close() {
  hide();
  if (history.state?.passage) history.back();
  else history.replaceState(null, "", address());
}

function follow() {
  const query = new URLSearchParams(location.search);
  if (query.has("document") && query.has("passage")) load(query.get("document"), query.get("passage"));
  else if (!pane.hidden) hide();
}

find("#reading-close").addEventListener("click", close);
find("#reading-link").addEventListener("click", () => {
  const url = new URL("/", location.origin);
  const query = new URLSearchParams(location.search);
  for (const key of ["document", "passage"]) url.searchParams.set(key, query.get(key));
  copy(url.href, words.link_copied);
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && !pane.hidden) close();
});
addEventListener("popstate", follow);
follow();
