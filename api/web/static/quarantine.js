// All passages that wait for an administrator, by document.

import { call } from "./api.js";
import { find, node, notice } from "./dom.js";
import "./frame.js";
import { heldList } from "./held.js";

const place = find("#quarantine");

function block(document, chunks) {
  return node("section", { class: "card" },
    node("h2", {}, node("a", { href: `/documents/${document.id}?view=held` }, document.title)),
    node("p", { class: "hint" }, `${document.collection} · ${document.path}`),
    ...heldList(document, chunks, load).filter(Boolean));
}

async function load() {
  const { passages } = await call("/v1/quarantine");
  const byDocument = new Map();
  for (const { document, chunk } of passages) {
    if (!byDocument.has(document.id)) byDocument.set(document.id, { document, chunks: [] });
    byDocument.get(document.id).chunks.push(chunk);
  }
  place.replaceChildren(...[...byDocument.values()].map(({ document, chunks }) => block(document, chunks)));
  find("#quarantine-empty").hidden = passages.length > 0;
}

load().catch((error) => notice(error.message));
