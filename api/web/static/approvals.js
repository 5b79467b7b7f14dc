// Answers that wait: read with what they cite, approved, or rejected with a reason.

import { call } from "./api.js";
import { find, list, moment, node, notice, say, where, words } from "./dom.js";
import "./frame.js";

const place = find("#approvals");

const address = (one) => `/?${new URLSearchParams({ document: one.document_id, passage: one.chunk_id, revision: one.revision, start: one.start, end: one.end })}`;

function cited(one) {
  return node("li", {},
    node("a", { href: address(one) }, `[${one.n}] ${one.title}`), " ",
    node("span", { class: "hint" }, [where(one), one.document].filter(Boolean).join(" · ")),
    one.quote ? node("blockquote", {}, one.quote) : null);
}

function answerOf(held) {
  const answer = node("div", { class: "answer" });
  answer.innerHTML = held.answer_html; // sanitised by our server
  return answer;
}

function decision(held) {
  const send = async (approved, reason) => {
    try {
      await call(`/v1/approvals/${held.turn_id}`, { method: "POST", body: { approved, ...(reason && { reason }) } });
      notice(approved ? words.approved : words.rejected);
    } catch (error) { notice(error.message); }
    await load();
  };
  const reason = node("input", { "aria-label": words.reject_reason, placeholder: words.reject_reason, maxlength: "500", required: true });
  const form = node("form", { class: "decision", submit: (event) => { event.preventDefault(); send(false, reason.value.trim()); } },
    node("button", { type: "button", class: "primary", click: () => send(true) }, words.approve),
    reason, node("button", { class: "danger" }, words.reject));
  return form;
}

function card(held) {
  return node("article", { class: "card" },
    node("h2", {}, held.question),
    node("p", { class: "hint" }, [say("asked_by", { user: held.user, at: moment(held.asked_at) }), say("approval_for", { collections: list(held.collections) })].join(" · ")),
    answerOf(held),
    node("ol", { class: "cited" }, ...held.citations.map(cited)),
    decision(held));
}

async function load() {
  const { approvals } = await call("/v1/approvals");
  place.replaceChildren(...approvals.map(card));
  find("#approvals-empty").hidden = approvals.length > 0;
}

load().catch((error) => notice(error.message));
