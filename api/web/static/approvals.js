// Answers that wait: read with what they cite, approved, or rejected with a reason.

import { call } from "./api.js";
import { find, list, moment, node, notice, number, say, since, tell, where, words } from "./dom.js";
import "./frame.js";
import { lookAgain } from "./live.js";

const place = find("#approvals");
const told = find("#approvals-wait");
// The cards that are shown, by turn: what somebody is writing in one must stay while others come and go.
const shown = new Map();

const address = (one) => `/?${new URLSearchParams({ document: one.document_id, passage: one.chunk_id, ...(one.revision && { revision: one.revision, start: one.start, end: one.end }) })}`;

function cited(one) {
  const title = `[${one.n}] ${one.title}`;
  return node("li", {},
    one.origin === "peer" ? node("b", {}, title) : node("a", { href: address(one), target: "_blank" }, title), " ",
    node("span", { class: "hint" }, [where(one), one.document, since(one)].filter(Boolean).join(" · ")),
    one.quote ? node("blockquote", {}, one.quote) : null);
}

function answerOf(held) {
  const answer = node("div", { class: "answer", lang: held.language === "zh" ? "zh-CN" : "en" });
  answer.innerHTML = held.answer_html; // sanitised by our server
  for (const mark of answer.querySelectorAll("a.cite")) mark.target = "_blank";
  const lines = [held.notice, held.missing.length && say("answer_missing", { missing: list(held.missing) })];
  answer.append(...lines.filter(Boolean).map((line) => node("p", { class: "hint" }, line)));
  return answer;
}

function decision(held) {
  const id = `note-${held.turn_id}`;
  const note = node("input", { id, maxlength: "500", autocomplete: "off" });
  const decide = async (approved) => {
    note.required = !approved;
    if (!form.reportValidity()) return;
    const reason = note.value.trim();
    try {
      await call(`/v1/approvals/${held.turn_id}`, { method: "POST", body: { approved, ...(reason && { reason }) } });
      notice(approved ? words.approved : words.rejected);
    } catch (error) { notice(error.message); }
    await load().catch((error) => notice(error.message));
  };
  // Enter in the note decides nothing: which of the two would be a guess.
  const form = node("form", { class: "decision", submit: (event) => event.preventDefault() },
    node("label", { for: id }, words.decision_note), note,
    node("div", { class: "buttons" },
      node("button", { type: "button", class: "primary", click: () => decide(true) }, words.approve),
      node("button", { type: "button", class: "danger", click: () => decide(false) }, words.reject)));
  return form;
}

function card(held) {
  const name = `asked-${held.turn_id}`;
  return node("article", { class: "card", "aria-labelledby": name },
    node("h2", { id: name, tabindex: "-1" }, held.question),
    node("p", { class: "hint" }, [say("asked_by", { user: held.user, at: moment(held.asked_at) }), say("approval_for", { collections: list(held.collections.map((name) => `“${name}”`)) })].join(" · ")),
    answerOf(held),
    node("ol", { class: "cited" }, ...held.citations.map(cited)),
    decision(held));
}

async function load() {
  const { approvals, waiting } = await call("/v1/approvals");
  const wanted = new Set(approvals.map((held) => held.turn_id));
  const focused = place.contains(document.activeElement);
  for (const [id, element] of shown) {
    if (wanted.has(id)) continue;
    element.remove();
    shown.delete(id);
  }
  for (const held of approvals.filter((one) => !shown.has(one.turn_id))) {
    shown.set(held.turn_id, card(held));
    place.append(shown.get(held.turn_id));
  }
  find("#waiting").textContent = waiting ? number(waiting) : "";
  const text = waiting ? tell("approvals_wait", waiting) : words.approvals_empty;
  if (told.textContent !== text) told.textContent = text;
  // Whoever decided by keyboard goes on with the next one.
  if (focused && !place.contains(document.activeElement)) (find("h2", place) ?? told).focus();
}

load().catch((error) => notice(error.message));
lookAgain(load);
