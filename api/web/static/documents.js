// The Documents page: upload and watch, read as the machine did, delete with a receipt.

import { call } from "./api.js";
import { date, find, node, notice, number, receiptText, say, when, where, words } from "./dom.js";
import "./frame.js";

const POLL_MS = 1500;
const drop = find("#upload");
const rows = find("#documents tbody");
const reader = find("#reader");
let documents = [];
let maxBytes = Infinity;
let timer;

// --- the table ------------------------------------------------------------------------------------------------------

function stateCell(item) {
  return node("td", {},
    node("span", { class: `state ${item.state}` }, words[`state_${item.state}`]),
    item.reason ? node("span", { class: "reason" }, item.reason) : "");
}

function row(item) {
  return node("tr", {},
    node("td", {}, item.title, node("span", { class: "path" }, item.path)),
    node("td", {}, item.collection),
    stateCell(item),
    node("td", { class: "number" }, number(item.pages)),
    node("td", { class: "number" }, number(item.chunks)),
    node("td", {}, item.language ? words[`language_${item.language}`] : ""),
    node("td", {}, item.effective_from || item.effective_to ? when(item) : ""),
    node("td", {}, date(item.updated_at)),
    node("td", {},
      item.chunks ? node("button", { type: "button", class: "quiet", "aria-label": `${words.view_read}: ${item.title}`, click: () => read(item) }, words.view_read) : "",
      node("button", { type: "button", class: "quiet", "aria-label": `${words.delete}: ${item.title}`, click: () => remove(item) }, words.delete)));
}

function draw() {
  const wanted = find("#filter").value.trim().toLowerCase();
  const shown = documents.filter((item) => `${item.title} ${item.path}`.toLowerCase().includes(wanted));
  rows.replaceChildren(...shown.map(row));
  find("#documents-empty").hidden = documents.length > 0;
  find("#count").textContent = say("documents_count", { shown: number(shown.length), total: number(documents.length) });
}

async function load() {
  try {
    const found = await call("/v1/documents");
    // Drawn only when something changed: whoever stands in the table with the keyboard would be thrown out of it.
    const changed = JSON.stringify(found.documents) !== JSON.stringify(documents);
    ({ documents, max_bytes: maxBytes } = found);
    if (changed || !documents.length) draw();
  } finally {
    // Poll only while something is on its way: the state survives a reload because it lives in the database.
    clearTimeout(timer);
    if (documents.some((item) => item.state === "queued" || item.state === "processing")) {
      timer = setTimeout(() => load().catch(report), POLL_MS);
    }
  }
}

const report = (error) => notice(say("error_generic", { message: error.message }));

// --- reading and deleting -------------------------------------------------------------------------------------------

async function read(item) {
  const found = await call(`/v1/documents/${item.id}/chunks`).catch(report);
  if (!found) return;
  const { chunks } = found;
  find("#reader-title").textContent = item.title;
  find("#reader-lead").textContent = say("view_read_lead", { chunks: number(chunks.length) });
  find("#reader-body").replaceChildren(...chunks.map((chunk) => node("section", {},
    node("span", { class: "where" }, where(chunk)), node("p", {}, chunk.text))));
  reader.showModal();
}

async function remove(item) {
  if (!confirm(say("delete_document_confirm", { title: item.title, chunks: number(item.chunks) }))) return;
  try {
    const receipt = await call(`/v1/documents/${item.id}`, { method: "DELETE" });
    notice(say("document_deleted", { title: item.title, receipt: receiptText(receipt.counts) }));
    await load();
  } catch (error) { report(error); }
}

find("#reader-close").addEventListener("click", () => reader.close());

// --- uploading ------------------------------------------------------------------------------------------------------

async function upload(file) {
  const line = node("li", {}, say("uploading", { name: file.name }));
  find("#uploads").prepend(line);
  const body = new FormData();
  body.append("collection", find("#upload-collection").value.trim());
  body.append("file", file);
  try {
    // The server would cut the connection half-way, which tells nobody why.
    if (file.size > maxBytes) throw new Error(say("upload_too_large", { most: number(Math.floor(maxBytes / 2 ** 20)) }));
    const item = await call("/v1/documents", { method: "POST", body });
    line.textContent = say(item.state === "ready" ? "upload_known" : "upload_accepted", { name: file.name });
  } catch (error) {
    line.textContent = say("upload_failed", { name: file.name, message: error.message });
    line.classList.add("error");
  }
  await load().catch(report);
}

async function uploadAll(files) {
  if (!drop.reportValidity()) return;
  for (const file of files) await upload(file);
}

find("#files").addEventListener("change", (event) => {
  uploadAll([...event.target.files]).finally(() => { event.target.value = ""; });
});
for (const name of ["dragenter", "dragover"]) {
  drop.addEventListener(name, (event) => { event.preventDefault(); drop.classList.add("over"); });
}
for (const name of ["dragleave", "drop"]) drop.addEventListener(name, () => drop.classList.remove("over"));
drop.addEventListener("drop", (event) => { event.preventDefault(); uploadAll([...event.dataTransfer.files]); });
drop.addEventListener("submit", (event) => event.preventDefault());

find("#filter").addEventListener("input", draw);
call("/v1/collections").then(({ collections }) => {
  find("#collections").replaceChildren(...collections.map((item) => node("option", { value: item.name })));
}).catch(report);
load().catch(report);
