// A document as the machine read it: chunk by chunk, where there are pictures beside the page that it was read from.

import { node, number, percent, say, where, words } from "./dom.js";
import { heldList, isHeld } from "./held.js";
import { boxesOn, hasPictures, pagePicture } from "./pictures.js";

// How sure OCR must be of a page for nobody to look at it again.
const SURE = 0.7;

function badge(chunk) {
  if (isHeld(chunk)) return node("span", { class: "badge held" }, words.badge_held);
  return chunk.released ? node("span", { class: "badge" }, words.badge_released) : null;
}

function chunkBlock(chunk, place) {
  return node("article", { class: "chunk", id: `chunk-${chunk.id}`, "data-kind": chunk.kind },
    node("header", {},
      node("a", { href: `#chunk-${chunk.id}`, class: "ordinal", "aria-label": say("chunk_number", { number: number(chunk.ordinal + 1) }) }, number(chunk.ordinal + 1)),
      node("span", { class: "where" }, place), badge(chunk)),
    node("p", {}, chunk.text));
}

// --- beside the page ------------------------------------------------------------------------------------------------

/** Show on the picture where a chunk stands, while the pointer or the keyboard is on it. */
function pointing(block, chunk, page, figure) {
  const boxes = boxesOn(page, chunk.boxes);
  const show = () => figure.append(...boxes);
  const hide = () => { for (const box of boxes) box.remove(); };
  for (const name of ["mouseenter", "focusin"]) block.addEventListener(name, show);
  for (const name of ["mouseleave", "focusout"]) block.addEventListener(name, hide);
  return block;
}

function lazyPicture(item, page, revision) {
  const figure = pagePicture(item, page, {
    loading: "lazy",
    load: () => figure.classList.add("loaded"),
    error: () => figure.replaceChildren(node("p", { class: "hint" }, words.no_picture)),
  }, revision.number);
  return figure;
}

function pageRow(item, page, chunks, revision) {
  const figure = lazyPicture(item, page, revision);
  const confidence = revision.confidence[page];
  const blocks = chunks.map((chunk) => pointing(chunkBlock(chunk, where({ ...chunk, page: null })), chunk, page, figure));
  return node("section", { class: "page-row", id: `page-${page}`, "aria-label": say("page", { page: number(page) }) },
    figure,
    node("div", {},
      node("h3", {}, say("page", { page: number(page) }),
        confidence == null ? "" : node("span", { class: confidence < SURE ? "badge held" : "badge" }, say("ocr_confidence", { share: percent(confidence) }))),
      ...blocks, blocks.length ? null : node("p", { class: "hint" }, words.page_empty)));
}

function besidePages(item, chunks, revision) {
  const byPage = Map.groupBy(chunks, (chunk) => chunk.page ?? 1);
  const pages = Array.from({ length: revision.pages ?? 0 }, (_, index) => index + 1);
  return pages.map((page) => pageRow(item, page, byPage.get(page) ?? [], revision));
}

/** The chunks of one revision, null where nothing was read yet. Its `confidence` says how sure OCR was of each page, 0 to 1. */
export function readout(item, chunks, revision) {
  const pictured = revision && hasPictures(item);
  if (!chunks.length && !pictured) return [node("p", { class: "hint" }, words.nothing_read)];
  return pictured ? besidePages(item, chunks, revision) : plain(chunks);
}

const plain = (chunks) => [node("div", { class: "chunks" }, ...chunks.map((chunk) => chunkBlock(chunk, where(chunk))))];

/** The passages of a document that wait for an administrator. */
export function heldView(item, chunks, done) {
  const held = chunks.filter(isHeld);
  if (!held.length) return [node("p", { class: "hint" }, words.quarantine_empty)];
  return [node("p", { class: "hint" }, words.quarantine_lead), ...heldList(item, held, done)];
}
