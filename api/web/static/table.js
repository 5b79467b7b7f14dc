// The table of documents: filtered, sorted, one screenful at a time. What is shown stands in the address.

import { date, find, locale, node, notice, number, say, tell, validity, words } from "./dom.js";
import { changed, inOrder, isReached, more, narrow, setFilters, shelf } from "./shelf.js";
import { standings, stateOf, warningsOf } from "./states.js";

const SCREENFUL = 50;
const TYPING_MS = 250;
const body = find("#documents tbody");
const text = find("#filter");
const collection = find("#filter-collection");
const standing = find("#filter-state");
const query = new URLSearchParams(location.search);
const view = { sort: query.get("sort") ?? "", down: query.has("down"), page: Number(query.get("page")) || 1 };
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

// What came in a mail or archive stands beneath it. Unless another order is asked for it is that of the server's pages.
function ordered(items) {
  if (!view.sort) return items.sort(inOrder);
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

/** The documents that fit the filters, as far as they are here. */
export const shown = () => [...shelf.documents.values()].filter(wanted()).filter(isReached);

/** How many fit the filters. */
const counted = (items) => (shelf.next && shelf.counts ? Math.max(shelf.counts[standing.value || "all"], items.length) : items.length);

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

// Set while what the filters say was not asked of the server yet.
let typing = null;
let collections = [];
/** The names of the collections that there are. */
export const withCollections = (names) => { collections = names; };

function drawCollections() {
  const known = [...shelf.documents.values()].map((item) => item.collection);
  const names = [...new Set([...collections, ...known])].sort(collator.compare);
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

function drawStandings() {
  for (const option of standing.options) {
    option.label = shelf.counts ? say("standing_counted", { name: option.text, count: number(shelf.counts[option.value || "all"]) }) : option.text;
  }
}

const report = (error) => notice(say("error_generic", { message: error.message }));

export function draw() {
  drawCollections();
  drawStandings();
  const items = ordered(shown());
  const total = counted(items);
  const pages = Math.max(1, Math.ceil(total / SCREENFUL));
  view.page = Math.min(Math.max(1, view.page), pages);
  place(items.slice((view.page - 1) * SCREENFUL, view.page * SCREENFUL).map(rowOf));
  drawPager(pages);
  drawSorting();
  focusOpened();
  // Another order than the server's needs them all.
  if (shelf.next && !typing && (view.sort || items.length < view.page * SCREENFUL)) more(view.sort).catch(report);
  const all = Math.max(shelf.all?.all ?? 0, shelf.documents.size);
  find("#documents-empty").hidden = !shelf.all || all > 0;
  find("#nothing-found").hidden = !all || items.length > 0 || shelf.next;
  find("#count").textContent = shelf.all ? say("documents_count", { shown: number(total), total: tell("documents_total", all) }) : "";
}

// --- the address ----------------------------------------------------------------------------------------------------

function remember() {
  const said = { q: text.value.trim(), collection: collection.value, state: standing.value };
  if (view.sort) said.sort = view.sort;
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

/** What the filters ask of the server. */
const asked = () => ({ collection: collection.value, q: text.value.trim(), standing: standing.value });

async function ask() {
  setFilters(asked());
  await narrow().catch(report);
  typing = null;
  changed();
}

function filterBy(pause) {
  clearTimeout(typing);
  typing = setTimeout(ask, pause);
  turn(1);
}

/** Show the documents of one standing (a key of `standings`), "" for all. */
export function showOnly(name) {
  standing.value = name;
  text.value = "";
  collection.value = "";
  filterBy(0);
}

text.value = query.get("q") ?? "";
standing.value = query.get("state") ?? "";
if (!(view.sort in columns)) view.sort = "";
text.addEventListener("input", () => filterBy(TYPING_MS));
for (const choice of [collection, standing]) choice.addEventListener("input", () => filterBy(0));
for (const header of document.querySelectorAll("#documents th[data-sort]")) {
  find("button", header).addEventListener("click", () => sortBy(header.dataset.sort));
}
find("#pager-back").addEventListener("click", () => turn(view.page - 1));
find("#pager-on").addEventListener("click", () => turn(view.page + 1));

// The collection that the address asks for has no entry to choose before the collections are known.
setFilters({ ...asked(), collection: query.get("collection") ?? "" });
