// The table of documents: filtered, sorted, one screenful at a time. What is shown stands in the address.

import { date, find, locale, node, number, say, tell, validity, words } from "./dom.js";
import { shelf } from "./shelf.js";
import { standings, stateOf, warningsOf } from "./states.js";

const SCREENFUL = 50;
const body = find("#documents tbody");
const text = find("#filter");
const collection = find("#filter-collection");
const standing = find("#filter-state");
const query = new URLSearchParams(location.search);
const view = { sort: query.get("sort") ?? "title", down: query.has("down"), page: Number(query.get("page")) || 1 };
const collator = new Intl.Collator(locale, { numeric: true });

const columns = {
  title: (item) => item.title,
  collection: (item) => item.collection,
  state: (item) => `${Object.keys(standings).findIndex((name) => standings[name](item))}`,
  pages: (item) => item.pages ?? 0,
  chunks: (item) => item.chunks,
  changed: (item) => item.updated_at,
};

// --- which, and in what order ---------------------------------------------------------------------------------------

/** The mail or archive that a document came in, whatever that came in itself; the document when it came alone. */
function origin(item) {
  const parent = shelf.documents.get(item.parent_id);
  return parent ? origin(parent) : item;
}

function compare(a, b) {
  const [left, right] = [columns[view.sort](a), columns[view.sort](b)];
  const order = typeof left === "number" ? left - right : collator.compare(left, right);
  return (view.down ? -order : order) || collator.compare(a.path, b.path);
}

// What came in a mail or archive stands beneath it.
function inOrder(items) {
  const origins = new Map(items.map((item) => [item.id, origin(item)]));
  return items.sort((a, b) => {
    const [left, right] = [origins.get(a.id), origins.get(b.id)];
    return left === right ? collator.compare(a.path, b.path) : compare(left, right) || collator.compare(left.id, right.id);
  });
}

function wanted() {
  const terms = text.value.trim().toLowerCase().split(/\s+/);
  return (item) => {
    const about = `${item.title} ${item.path} ${item.source ?? ""}`.toLowerCase();
    return (!collection.value || item.collection === collection.value)
      && (!standing.value || standings[standing.value](item))
      && terms.every((term) => about.includes(term));
  };
}

export const shown = () => [...shelf.documents.values()].filter(wanted());

// --- rows -----------------------------------------------------------------------------------------------------------

let actions;
/** Have the buttons of a row made by `make(item)`. */
export const withActions = (make) => { actions = make; };

const cell = (label, attributes, ...children) => node("td", { role: "cell", "data-label": label, ...attributes }, ...children);

function titleCell(item) {
  const parent = shelf.documents.get(item.parent_id);
  return node("th", { role: "rowheader", scope: "row", class: parent ? "child" : null },
    node("a", { href: `/documents/${item.id}`, "data-key": "open", click: () => history.replaceState({ opened: item.id }, "") }, item.title),
    node("span", { class: "path" }, item.path),
    parent ? node("span", { class: "path" }, say("came_in", { title: parent.title })) : null);
}

function row(item) {
  return node("tr", { role: "row", id: `row-${item.id}` },
    titleCell(item),
    cell(words.col_collection, {}, item.collection),
    cell(words.col_state, { class: "standing" }, node("div", {}, ...stateOf(item), ...warningsOf(item))),
    cell(words.col_pages, { class: "number" }, number(item.pages)),
    cell(words.col_chunks, { class: "number" }, number(item.chunks || null)),
    cell(words.col_language, {}, words[`language_${item.language}`] ?? item.language ?? ""),
    cell(words.col_effective, {}, ...validity(item).map((line) => node("span", { class: "line" }, line))),
    cell(words.col_changed, {}, date(item.updated_at)),
    cell(null, { class: "actions" }, ...actions(item)));
}

const drawn = new Map();

/** The row of a document: the one that stands there as long as it would say the same. */
function rowOf(item) {
  const print = JSON.stringify([item, shelf.documents.get(item.parent_id)?.title]);
  const kept = drawn.get(item.id);
  if (kept?.print === print) return kept.row;
  const made = row(item);
  // Whoever stands in the row with the keyboard stays there.
  const key = kept?.row.contains(document.activeElement) ? document.activeElement.dataset.key : null;
  kept?.row.replaceWith(made);
  if (key) find(`[data-key="${key}"]`, made)?.focus({ preventScroll: true });
  drawn.set(item.id, { print, row: made });
  return made;
}

function place(rows) {
  let at = body.firstChild;
  for (const each of rows) {
    if (each === at) at = at.nextSibling;
    else body.insertBefore(each, at);
  }
  while (at) {
    const gone = at;
    at = at.nextSibling;
    gone.remove();
  }
}

// --- drawing --------------------------------------------------------------------------------------------------------

function drawPager(pages) {
  find("#pager").hidden = pages < 2;
  find("#pager-now").textContent = say("page_of", { page: number(view.page), pages: number(pages) });
  find("#pager-back").disabled = view.page <= 1;
  find("#pager-on").disabled = view.page >= pages;
}

function drawSorting() {
  for (const header of document.querySelectorAll("#documents th[data-sort]")) {
    if (header.dataset.sort !== view.sort) header.removeAttribute("aria-sort");
    else header.setAttribute("aria-sort", view.down ? "descending" : "ascending");
  }
}

function drawCollections() {
  const names = [...new Set([...shelf.documents.values()].map((item) => item.collection))].sort(collator.compare);
  const asked = collection.value || query.get("collection");
  if (names.join("\n") === [...collection.options].slice(1).map((option) => option.value).join("\n")) return;
  collection.replaceChildren(collection.options[0], ...names.map((name) => node("option", { value: name }, name)));
  if (names.includes(asked)) collection.value = asked;
}

// Coming back from a document's own page, one stands where one left.
let opened = history.state?.opened;
function focusOpened() {
  const left = opened && find(`#row-${opened} a`);
  if (!left) return;
  opened = null;
  left.focus();
}

export function draw() {
  drawCollections();
  const items = inOrder(shown());
  const pages = Math.max(1, Math.ceil(items.length / SCREENFUL));
  view.page = Math.min(Math.max(1, view.page), pages);
  place(items.slice((view.page - 1) * SCREENFUL, view.page * SCREENFUL).map(rowOf));
  drawPager(pages);
  drawSorting();
  focusOpened();
  find("#documents-empty").hidden = shelf.documents.size > 0;
  find("#nothing-found").hidden = !shelf.documents.size || items.length > 0;
  find("#count").textContent = say("documents_count", { shown: number(items.length), total: tell("documents_total", shelf.documents.size) });
}

// --- the address ----------------------------------------------------------------------------------------------------

function remember() {
  const said = { q: text.value.trim(), collection: collection.value, state: standing.value };
  if (view.sort !== "title") said.sort = view.sort;
  if (view.down) said.down = "1";
  if (view.page > 1) said.page = view.page;
  const search = new URLSearchParams(Object.entries(said).filter(([, value]) => value)).toString();
  history.replaceState(null, "", search ? `?${search}` : location.pathname);
}

function turn(to) {
  view.page = to;
  draw();
  remember();
}

function sortBy(name) {
  view.down = view.sort === name && !view.down;
  view.sort = name;
  turn(1);
}

/** Show the documents of one standing (a key of `standings`), "" for all. */
export function showOnly(name) {
  standing.value = name;
  text.value = "";
  collection.value = "";
  turn(1);
}

text.value = query.get("q") ?? "";
standing.value = query.get("state") ?? "";
if (!(view.sort in columns)) view.sort = "title";
for (const control of [text, collection, standing]) control.addEventListener("input", () => turn(1));
for (const header of document.querySelectorAll("#documents th[data-sort]")) {
  find("button", header).addEventListener("click", () => sortBy(header.dataset.sort));
}
find("#pager-back").addEventListener("click", () => turn(view.page - 1));
find("#pager-on").addEventListener("click", () => turn(view.page + 1));
