// Words that mean the same: groups of them, each word with a button that removes it.

import { call } from "./api.js";
import { find, node, notice, say, words } from "./dom.js";
import "./frame.js";

const place = find("#synonyms");
const given = find("#words-to-add");
const fault = find("#add-error");

async function remove(id, word) {
  try {
    await call(`/v1/synonyms/${id}?${new URLSearchParams({ word })}`, { method: "DELETE" });
    notice(say("synonyms_removed", { word }));
    await load();
    given.focus();
  } catch (error) { notice(error.message); }
}

const chip = (id, word) => node("li", {}, word,
  node("button", { type: "button", class: "quiet", "aria-label": say("synonyms_remove", { word }), click: () => remove(id, word) }, "×"));

async function load() {
  const { synonyms } = await call("/v1/synonyms");
  place.replaceChildren(...synonyms.map(({ id, words: same }) =>
    node("li", {}, node("ul", { class: "chips" }, ...same.map((word) => chip(id, word))))));
  find("#synonyms-empty").hidden = synonyms.length > 0;
}

find("#add").addEventListener("submit", async (event) => {
  event.preventDefault();
  fault.hidden = true;
  try {
    const asked = given.value.split(/[=＝;；]/).map((word) => word.trim()).filter(Boolean);
    await call("/v1/synonyms", { method: "POST", body: { words: asked } });
    given.value = "";
    await load();
  } catch (error) {
    fault.textContent = error.message;
    fault.hidden = false;
  }
  given.focus();
});

load().catch((error) => notice(error.message));
