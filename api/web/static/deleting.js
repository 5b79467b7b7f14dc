// Deleting a document: first what will go, then the receipt of what went.

import { call } from "./api.js";
import { find, kindOf, node, number, say, tell, words } from "./dom.js";

const dialog = find("#deletion");
const title = find("#deletion-title");
const body = find("#deletion-body");
const confirmButton = find("#deletion-confirm");
const closeButton = find("#deletion-close");

function counts(receipt) {
  const { quoting = 0, ...gone } = receipt.counts;
  const rows = Object.entries(gone).filter(([, count]) => count > 0);
  return [
    node("dl", { class: "counts" }, ...rows.flatMap(([kind, count]) =>
      [node("dd", {}, number(count)), node("dt", {}, kindOf(kind, count))])),
    node("p", {}, quoting ? tell("quoting", quoting) : words.quoting_none),
  ];
}

function show(heading, lead, parts, asking) {
  title.textContent = heading;
  body.replaceChildren(node("p", {}, lead), ...parts);
  confirmButton.hidden = !asking;
  confirmButton.disabled = false;
  closeButton.textContent = asking ? words.cancel : words.close;
  if (!dialog.open) dialog.showModal();
  closeButton.focus();
}

const failed = (error) => show(words.not_deleted, error.message, [], false);

/** Ask, delete, show the receipt. Resolves with whether the document is gone, when the dialog is closed. */
export async function remove(item) {
  let gone = false;
  const closed = new Promise((resolve) => { dialog.addEventListener("close", () => resolve(gone), { once: true }); });
  confirmButton.onclick = async () => {
    confirmButton.disabled = true;
    try {
      const receipt = await call(`/v1/documents/${item.id}`, { method: "DELETE" });
      gone = true;
      show(words.deleted, say("deleted_lead", { title: item.title }), counts(receipt), false);
    } catch (error) { failed(error); }
  };
  try {
    const plan = await call(`/v1/documents/${item.id}/deletion`);
    show(say("delete_title", { title: item.title }), words.delete_lead, counts(plan), true);
  } catch (error) { failed(error); }
  return closed;
}

closeButton.addEventListener("click", () => dialog.close());
