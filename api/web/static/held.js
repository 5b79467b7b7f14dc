// Passages kept from search because they read like instructions to the model: why, and letting them go.

import { call } from "./api.js";
import { node, notice, say, tell, where, words } from "./dom.js";

export const why = (chunk) => words[`suspicion_${chunk.suspicion}`] ?? say("suspicion_other", { code: chunk.suspicion });

/** Whether a passage still waits for an administrator. */
export const isHeld = (chunk) => chunk.suspicion != null && !chunk.released;

async function release(document, chunks, whole, done) {
  const body = whole ? {} : { chunk_ids: chunks.map((chunk) => chunk.id) };
  try {
    await call(`/v1/documents/${document.id}/release`, { method: "POST", body });
    notice(tell("released_notice", chunks.length));
    await done();
  } catch (error) { notice(error.message); }
}

function passage(document, chunk, done) {
  return node("li", { class: "held-passage" },
    node("p", { class: "why" }, why(chunk)),
    node("span", { class: "where" }, where(chunk)),
    node("blockquote", {}, chunk.text),
    node("button", { type: "button", click: () => release(document, [chunk], false, done) }, words.release));
}

/** The held passages of one document, each with its button, and one for all. `done` is called after a release. */
export function heldList(document, chunks, done) {
  const all = chunks.length > 1
    ? node("button", { type: "button", click: () => release(document, chunks, true, done) }, tell("release_all", chunks.length))
    : null;
  return [node("ol", { class: "held-list" }, ...chunks.map((chunk) => passage(document, chunk, done))), all];
}
