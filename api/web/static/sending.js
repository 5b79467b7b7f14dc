// Files on their way to the server, a few at a time; and what the server is working on, which it knows after a reload too.

import { call } from "./api.js";
import { find, node, number, say, span, tell } from "./dom.js";
import { changed, put, shelf } from "./shelf.js";
import { label, progressBar, progressText, underWay } from "./states.js";
import { showOnly } from "./table.js";

const AT_ONCE = 2;
const LISTED = 6;
const drop = find("#upload");
const sending = { waiting: [], now: 0, sent: 0, total: 0 };
let queue = null;

// --- sending --------------------------------------------------------------------------------------------------------

function told(text, isProblem) {
  const line = node("li", { class: isProblem ? "error" : null }, text);
  find("#uploads").prepend(line);
  find("#uploads-clear").hidden = false;
}

function outcome(name, item) {
  if (item.state === "ready") told(say("upload_known", { name }));
  else if (item.revision > 0) told(say("upload_newer", { name, title: item.title }));
}

async function send({ file, collection }) {
  // The server would cut the connection half-way, which tells nobody why.
  if (file.size > shelf.maxBytes) throw new Error(say("upload_too_large", { most: number(Math.floor(shelf.maxBytes / 2 ** 20)) }));
  const body = new FormData();
  body.append("collection", collection);
  body.append("file", file);
  const item = await call("/v1/documents", { method: "POST", body });
  put(item);
  outcome(file.name, item);
}

async function sendOn() {
  while (sending.waiting.length) {
    const next = sending.waiting.shift();
    changed();
    await send(next).catch((error) => told(say("upload_failed", { name: next.file.name, message: error.message }), true));
    sending.sent += 1;
  }
  sending.now -= 1;
  if (!sending.now) Object.assign(sending, { sent: 0, total: 0 });
  changed();
}

function sendAll(files) {
  if (!drop.reportValidity()) return;
  const collection = find("#upload-collection").value.trim();
  sending.waiting.push(...files.map((file) => ({ file, collection })));
  sending.total += files.length;
  while (sending.now < AT_ONCE && sending.now < sending.total - sending.sent) {
    sending.now += 1;
    sendOn();
  }
}

function dropped(event) {
  event.preventDefault();
  const items = [...event.dataTransfer.items].filter((item) => item.kind === "file");
  const entries = items.map((item) => ({ file: item.getAsFile(), folder: item.webkitGetAsEntry?.()?.isDirectory }));
  for (const { file, folder } of entries) if (folder) told(say("upload_folder", { name: file?.name ?? "" }), true);
  const files = entries.filter(({ file, folder }) => file && !folder).map(({ file }) => file);
  if (files.length) sendAll(files);
}

// --- what is under way ----------------------------------------------------------------------------------------------

/** How much waits on the server, as its event says: {waiting, processing, seconds_left}. */
export function heard(counts) {
  queue = counts;
  changed();
}

const counted = (items) => ({
  waiting: items.filter((item) => item.state === "queued").length,
  processing: items.filter((item) => item.state === "processing").length,
});

function summary(items) {
  const { waiting, processing, seconds_left: left } = queue ?? counted(items);
  return [
    sending.total ? say("sending", { sent: number(sending.sent), total: number(sending.total) }) : "",
    processing ? tell("queue_processing", processing) : "",
    waiting ? tell("queue_waiting", waiting) : "",
    (waiting || processing) && left != null ? say("time_left", { span: span(left) }) : "",
  ].filter(Boolean).join(" · ");
}

const nearest = (a, b) => (a.state < b.state ? -1 : a.state > b.state ? 1 : a.created_at < b.created_at ? -1 : 1);

function entry(item) {
  return node("li", {},
    node("a", { href: `/documents/${item.id}` }, item.title),
    node("span", { class: "hint" }, [label(item), item.progress ? progressText(item.progress) : ""].filter(Boolean).join(" · ")),
    item.progress ? progressBar(item.progress) : null);
}

/** Draw what is on its way: what is being read first, then what waits. */
export function drawUnderWay() {
  const items = [...shelf.documents.values()].filter(underWay).sort(nearest);
  const line = summary(items);
  find("#under-way").hidden = !line && !items.length;
  // A screen reader repeats a live region that is written anew, even with the same words.
  if (find("#under-way-summary").textContent !== line) find("#under-way-summary").textContent = line;
  find("#under-way-list").replaceChildren(...items.slice(0, LISTED).map(entry));
  const working = Math.max(items.length, shelf.all?.working ?? 0);
  find("#under-way-all").hidden = working <= LISTED;
  find("#under-way-all").textContent = tell("under_way_all", working);
}

find("#under-way-all").addEventListener("click", () => showOnly("working"));
find("#uploads-clear").addEventListener("click", () => {
  find("#uploads").replaceChildren();
  find("#uploads-clear").hidden = true;
});
find("#files").addEventListener("change", (event) => {
  sendAll([...event.target.files]);
  event.target.value = "";
});
for (const name of ["dragenter", "dragover"]) {
  drop.addEventListener(name, (event) => { event.preventDefault(); drop.classList.add("over"); });
}
for (const name of ["dragleave", "drop"]) drop.addEventListener(name, () => drop.classList.remove("over"));
drop.addEventListener("drop", dropped);
drop.addEventListener("submit", (event) => event.preventDefault());
// A file dropped beside the box would replace the page.
for (const name of ["dragover", "drop"]) document.addEventListener(name, (event) => event.preventDefault());
addEventListener("beforeunload", (event) => { if (sending.total) event.preventDefault(); });
