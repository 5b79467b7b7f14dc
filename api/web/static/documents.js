// The Documents page: add and watch, find, try again, delete with a receipt.

import { call } from "./api.js";
import { find, node, notice, say, tell, words } from "./dom.js";
import { remove } from "./deleting.js";
import "./frame.js";
import { follow } from "./live.js";
import { drawUnderWay, heard } from "./sending.js";
import { drop, everything, load, onChange, put, shelf } from "./shelf.js";
import { draw, shown, withActions, withCollections } from "./table.js";

const report = (error) => notice(say("error_generic", { message: error.message }));
const again = find("#retry-all");

const retry = async (item) => put(await call(`/v1/documents/${item.id}/retry`, { method: "POST" }));

async function removeRow(item) {
  if (await remove(item)) drop(item.id);
}

function action(key, item, act) {
  const attributes = { type: "button", class: "quiet", "data-key": key, "aria-label": `${words[key]}: ${item.title}` };
  return node("button", { ...attributes, click: () => act(item).catch(report) }, words[key]);
}

withActions((item) => [
  item.state === "failed" ? action("try_again", item, retry) : null,
  action("delete", item, removeRow),
]);

const failedOnes = () => shown().filter((item) => item.state === "failed");

function drawRetryAll() {
  const failed = find("#filter-state").value === "failed" ? Math.max(failedOnes().length, shelf.next ? shelf.counts.failed : 0) : 0;
  again.hidden = failed < 2;
  again.textContent = tell("try_all_again", failed);
}

function drawHeld() {
  const held = shelf.all?.passages_held ?? 0;
  find("#held").hidden = !held;
  find("#held-text").textContent = tell("held_notice", held);
}

again.addEventListener("click", async () => {
  again.disabled = true;
  await everything().catch(report);
  for (const item of failedOnes()) await retry(item).catch(report);
  again.disabled = false;
});

for (const part of [draw, drawUnderWay, drawHeld, drawRetryAll]) onChange(part);
follow({ reload: () => load().catch(report), document: put, gone: drop, queue: heard });
call("/v1/collections").then(({ collections }) => {
  withCollections(collections.map((item) => item.name));
  draw();
  find("#collections").replaceChildren(...collections.map((item) => node("option", { value: item.name })));
}).catch(report);
