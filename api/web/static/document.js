// One document, for administrators: its state, what was read of it, its revisions, what is held back, its dates.

import { call } from "./api.js";
import { remove } from "./deleting.js";
import { date, find, moment, node, notice, number, say, size, tell, validity, words } from "./dom.js";
import "./frame.js";
import { follow } from "./live.js";
import { heldView, readout } from "./readout.js";
import { revisionsView } from "./revisions.js";
import { reason, stateOf, warningText } from "./states.js";

// What may hold other documents.
const CONTAINERS = new Set(["message/rfc822", "application/vnd.ms-outlook", "application/zip"]);
const MOST_LINKS = 12;
const id = location.pathname.split("/").at(-1);
const at = `/v1/documents/${id}`;
const view = find("#view");
const dates = find("#dates");
const report = (error) => notice(say("error_generic", { message: error.message }));
let item = null;
let revisions = [];
let drawnView = null;

// --- what is known of it --------------------------------------------------------------------------------------------

const succession = (other) => node("span", {}, node("a", { href: `/documents/${other.document_id}` }, other.title), " ",
  other.day ? say("since_day", { date: date(other.day) }) : words.once_ready);

function facts() {
  return [
    [words.collection, item.collection],
    [words.col_found_by, words[`found_by_${item.searchable}`]],
    [words.col_effective, validity(item).join(" · ") || words.valid_always],
    [words.supersedes, item.older ? succession(item.older) : item.supersedes],
    [words.superseded_by, item.newer && succession(item.newer)],
    [words.col_revision, item.revision ? number(item.revision) : ""],
    [words.col_pages, number(item.pages)],
    [words.col_chunks, number(item.chunks)],
    [words.col_language, words[`language_${item.language}`] ?? item.language],
    [words.col_size, size(item.size)],
    [words.col_source, item.source ?? words.source_upload],
    [words.col_changed, moment(item.updated_at)],
  ].filter(([, value]) => value);
}

const pageLink = (page) => node("a", { href: `?view=read#page-${page}` }, say("page", { page: number(page) }));

// The server's own sentence may name what the wording for its code cannot.
const detail = (wording, sentence) => (sentence && wording !== sentence ? node("span", { class: "reason", lang: "en" }, sentence) : null);

function warningLine(warning) {
  const wording = warningText(warning);
  const links = warning.pages.filter((page) => page <= item.pages).slice(0, MOST_LINKS).map(pageLink);
  return node("li", {}, wording, detail(wording, warning.text), links.length ? node("span", { class: "links" }, ...links) : null);
}

function drawHead() {
  document.title = `${item.title} · Intramuros`;
  find("#title").textContent = item.title;
  find("#path").textContent = item.path;
  find("#actions").hidden = find("#document").hidden = false;
  find("#retry").hidden = item.state !== "failed";
  find("#state").replaceChildren(...stateOf(item), detail(reason(item), item.reason) ?? "");
  find("#facts").replaceChildren(...facts().map(([name, value]) => node("div", {}, node("dt", {}, name), node("dd", {}, value))));
  find("#warnings").hidden = !item.warnings.length;
  find("#warnings ul").replaceChildren(...item.warnings.map(warningLine));
  find("#view-held").hidden = !item.quarantined;
  find("#view-held").textContent = tell("held_back", item.quarantined);
}

const relative = (label, other) => node("li", {}, label ? `${label} ` : "", node("a", { href: `/documents/${other.id}` }, other.title),
  node("span", { class: "hint" }, ` ${words[`state_${other.state}`]}`));

async function drawRelatives() {
  const lines = [];
  if (item.parent_id) lines.push(relative(words.came_in_label, await call(`/v1/documents/${item.parent_id}`)));
  if (CONTAINERS.has(item.media_type)) {
    const { documents } = await call(`/v1/documents?parent=${item.id}&limit=1000`);
    lines.push(...documents.map((other) => relative("", other)));
  }
  find("#attachments").hidden = !lines.length;
  find("#attachments ul").replaceChildren(...lines);
}

// --- its views ------------------------------------------------------------------------------------------------------

const asked = () => new URLSearchParams(location.search);

async function olderReadout(numbered) {
  const { chunks } = await call(`${at}/revisions/${numbered}/chunks`);
  const lead = node("p", { class: "hint" }, say("older_revision", { number: number(numbered) }), " ", node("a", { href: "?view=read" }, words.newest_revision));
  return [lead, ...readout(item, chunks, revisions.find((one) => one.number === numbered))];
}

const newestChunks = async () => (await call(`${at}/chunks`)).chunks;

const views = {
  read: async () => {
    const numbered = Number(asked().get("revision"));
    if (numbered && numbered !== item.revision) return olderReadout(numbered);
    return readout(item, await newestChunks(), revisions[0] ?? null);
  },
  revisions: async () => revisionsView(item, revisions),
  held: async () => heldView(item, await newestChunks(), load),
};

async function drawView() {
  const name = asked().get("view") in views ? asked().get("view") : "read";
  for (const link of document.querySelectorAll(".views a")) {
    link.toggleAttribute("aria-current", new URL(link.href).searchParams.get("view") === name);
  }
  const print = JSON.stringify([location.search, item.sha256, item.state, item.chunks, item.quarantined, revisions]);
  if (print === drawnView) return;
  drawnView = print;
  const parts = await views[name]();
  if (print !== drawnView) return; // another one was asked for meanwhile
  view.replaceChildren(...parts.filter(Boolean));
  showTarget();
}

function showTarget() {
  const target = document.getElementById(location.hash.slice(1));
  target?.scrollIntoView();
  return target;
}

async function load() {
  try {
    [item, { revisions }] = await Promise.all([call(at), call(`${at}/revisions`)]);
    revisions.sort((a, b) => b.number - a.number);
    drawHead();
    await Promise.all([drawRelatives(), drawView()]);
  } catch (error) {
    if (error.status !== 404) return report(error);
    showGone();
  }
}

function showGone() {
  find("#missing").textContent = words.document_gone;
  find("#missing").hidden = false;
  find("#document").hidden = find("#actions").hidden = true;
}

function heard(changed) {
  if (changed.id !== id) return;
  // What is counted on the way needs no more than the head; what was read anew, all of it.
  const same = item && ["state", "revision", "chunks", "quarantined"].every((key) => item[key] === changed[key]);
  item = changed;
  if (same) drawHead();
  else load();
}

document.addEventListener("click", (event) => {
  const link = event.target.closest("a[href^='?']");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  history.pushState(null, "", link.getAttribute("href"));
  drawView().then(() => showTarget() ?? view.focus({ preventScroll: true })).catch(report);
});
addEventListener("popstate", () => { if (item) drawView().catch(report); });

// --- what can be done with it ---------------------------------------------------------------------------------------

function editing(open) {
  dates.hidden = !open;
  find("#edit-dates").hidden = open;
  find("#dates-error").hidden = true;
  if (!open) return find("#edit-dates").focus();
  for (const name of ["effective_from", "effective_to", "supersedes"]) dates.elements[name].value = item[name] ?? "";
  dates.elements.effective_from.focus();
}

function wrong(message) {
  find("#dates-error").textContent = message;
  find("#dates-error").hidden = false;
}

async function save(event) {
  event.preventDefault();
  const values = Object.entries(Object.fromEntries(new FormData(dates)));
  const body = Object.fromEntries(values.map(([name, value]) => [name, value.trim() || null]));
  if (body.effective_from && body.effective_to && body.effective_to < body.effective_from) return wrong(words.dates_reversed);
  try {
    item = await call(at, { method: "PATCH", body });
    editing(false);
    notice(words.saved);
    await load();
  } catch (error) { wrong(error.message); }
}

find("#edit-dates").addEventListener("click", () => editing(true));
dates.addEventListener("reset", () => editing(false));
dates.addEventListener("submit", save);
find("#retry").addEventListener("click", () => call(`${at}/retry`, { method: "POST" }).then(load).catch(report));
let deleting = false;
find("#delete").addEventListener("click", async () => {
  deleting = true; // the receipt is read here before one leaves
  if (await remove(item)) location.assign("/documents");
  deleting = false;
});

follow({ reload: load, document: heard, gone: (other) => { if (other === id && !deleting) showGone(); } });
