// One question with its answer: source cards, streaming text, citations, tools under the answer.

import { call } from "./api.js";
import { copy, find, list, node, notice, say, since, when, where, words } from "./dom.js";
import { openPassage } from "./reading.js";

const MARK = /\[(\d{1,2})\]/g;
const preview = find("#preview");

function showPreview(anchor, citation) {
  preview.replaceChildren(node("b", {}, citation.title), citation.quote || since(citation));
  preview.hidden = false;
  const place = anchor.getBoundingClientRect();
  const left = Math.min(place.left + scrollX, scrollX + innerWidth - preview.offsetWidth - 12);
  Object.assign(preview.style, { left: `${Math.max(8, left)}px`, top: `${place.bottom + scrollY + 6}px` });
}

const hidePreview = () => { preview.hidden = true; };
document.addEventListener("keydown", (event) => { if (event.key === "Escape") hidePreview(); });

export class Turn {
  constructor(question) {
    this.sources = [];
    this.text = "";
    this.over = false;
    this.citations = new Map();
    this.status = node("p", { class: "status live", role: "status", "aria-live": "polite" }, words.searching);
    this.outcome = node("p", { class: "outcome", hidden: true });
    this.answer = node("div", { class: "answer", "aria-live": "polite", "aria-busy": "true" });
    this.cards = node("div", { class: "sources" });
    this.tools = node("div", { class: "tools" });
    this.element = node("article", { class: "turn" },
      node("h2", { class: "asked" }, node("span", { class: "visually-hidden" }, `${words.you_asked}: `), question),
      this.status, this.outcome, this.answer, this.cards, this.tools);
    this.question = question;
  }

  /** Nothing more comes. Until now the answer was busy: a screen reader would have begun anew at every word. */
  end() {
    this.over = true;
    this.status.classList.remove("live");
    this.answer.removeAttribute("aria-busy");
  }

  say(text) { this.status.textContent = text; }

  addSource(hit) {
    this.sources.push(hit);
    this.drawCards(words.sources_read, this.sources);
  }

  addText(text) {
    this.text += text;
    this.answer.replaceChildren(...this.withMarks(this.text));
  }

  /** Text with its marks [n] looking as they will; they become links when the answer is whole. */
  withMarks(text) {
    const parts = [];
    let last = 0;
    for (const match of text.matchAll(MARK)) {
      parts.push(text.slice(last, match.index), node("span", { class: "cite" }, match[0]));
      last = match.index + match[0].length;
    }
    return [...parts, text.slice(last)];
  }

  finish(result) {
    this.result = result;
    this.citations = new Map(result.citations.map((citation) => [String(citation.n), citation]));
    this.status.hidden = true;
    this.answer.lang = result.language === "zh" ? "zh-CN" : "en";
    this.answer.innerHTML = result.answer_html; // sanitised by our server
    this.bindMarks();
    this.drawOutcome(result);
    const refused = result.outcome === "refused";
    if (result.citations.length) this.drawCards(words.sources, result.citations);
    else if (refused && result.nearest?.length) this.drawCards(words.sources_nearest, result.nearest);
    else this.cards.replaceChildren();
    this.drawTools(result);
    this.end();
  }

  /** Whether somebody has yet to approve the answer. */
  get waits() { return this.result?.outcome === "waiting"; }

  drawOutcome(result) {
    const text = result.verdict === "caveat" ? words.outcome_caveat : words[`outcome_${result.outcome}`];
    this.outcome.hidden = !text;
    this.outcome.textContent = text ?? "";
    const lines = [
      result.notice,
      result.missing?.length && say("answer_missing", { missing: list(result.missing) }),
      result.searched?.length && say("answer_searched", { searched: list(result.searched.map((query) => `“${query}”`)) }),
      result.contacts?.length && say("answer_contacts", { contacts: list(result.contacts) }),
      result.outcome === "refused" && !result.contacts?.length && words.refusal_help,
      this.waits && words.waiting_help,
    ];
    this.answer.append(...lines.filter(Boolean).map((line) => node("p", { class: "hint" }, line)));
  }

  bindMarks() {
    for (const mark of this.answer.querySelectorAll("a.cite")) {
      const citation = this.citations.get(mark.dataset.n);
      mark.setAttribute("aria-describedby", "preview");
      mark.setAttribute("aria-label", `${mark.textContent} ${say("open_passage", { n: citation.n, title: citation.title })}`);
      mark.addEventListener("click", (event) => {
        event.preventDefault();
        hidePreview();
        openPassage(citation, mark);
      });
      for (const on of ["mouseenter", "focus"]) mark.addEventListener(on, () => showPreview(mark, citation));
      for (const off of ["mouseleave", "blur"]) mark.addEventListener(off, hidePreview);
    }
  }

  drawCards(title, items) {
    this.cards.replaceChildren(node("h3", {}, title), node("ol", {}, ...items.map((item) => node("li", {},
      node("button", {
        type: "button", class: "source", click: (event) => openPassage(item, event.currentTarget),
      },
      node("b", {}, item.n ? node("span", { class: "n" }, `[${item.n}]`) : "", item.title),
      node("span", { class: "where" }, where(item)),
      node("span", { class: "when" }, since(item) || when(item)))))));
  }

  drawTools(result) {
    // There is nothing yet to copy, to save or to judge.
    if (this.waits) return;
    const seconds = result.timings?.total;
    const asked = result.standalone_question && result.standalone_question !== result.question
      ? node("span", {}, say("asked_as", { question: result.standalone_question })) : null;
    const tools = [
      node("button", { type: "button", class: "quiet", click: () => this.copy() }, words.copy),
      node("button", { type: "button", class: "quiet", click: () => print() }, words.print),
      ...(result.turn_id ? [...this.exports(result), this.fork(result), ...this.thumbs(result.turn_id, result.feedback)] : []),
      node("span", { class: "hint" }, asked ?? "", seconds ? ` ${say("took", { seconds: seconds.toFixed(1) })}` : ""),
    ];
    this.tools.replaceChildren(...tools.filter(Boolean));
  }

  /** This answer as a file, with its sources. */
  exports({ turn_id: turnId }) {
    if (!this.session) return [];
    const address = `/v1/sessions/${this.session}/export?turn=${turnId}&format=`;
    return ["md", "docx"].map((format) =>
      node("a", { class: "quiet", href: address + format, download: "", "aria-label": `.${format}: ${words[`save_${format}`]}` }, `.${format}`));
  }

  /** Go on from here in a conversation of its own. */
  fork({ turn_id: turnId }) {
    const begin = async () => {
      try {
        const session = await call(`/v1/turns/${turnId}/fork`, { method: "POST" });
        document.dispatchEvent(new CustomEvent("forked", { detail: session }));
      } catch (error) { notice(error.message); }
    };
    return node("button", { type: "button", class: "quiet", click: begin }, words.fork);
  }

  thumbs(turnId, given) {
    const send = async (value, reason) => {
      try {
        await call(`/v1/turns/${turnId}/feedback`, { method: "POST", body: { value, ...(reason && { reason }) } });
        notice(words.feedback_thanks);
      } catch (error) { notice(error.message); }
    };
    const form = node("form", {
      class: "feedback", hidden: true,
      submit: (event) => { event.preventDefault(); form.hidden = true; send(-1, reason.value.trim()); },
    });
    const reason = node("input", { "aria-label": words.feedback_reason, placeholder: words.feedback_reason, maxlength: "500" });
    form.append(reason, node("button", { type: "submit" }, words.feedback_send));
    const press = (chosen) => { for (const button of [up, down]) button.setAttribute("aria-pressed", String(button === chosen)); };
    const up = node("button", { type: "button", class: "quiet", "aria-pressed": "false", click: () => { press(up); form.hidden = true; send(1); } }, words.helpful);
    const down = node("button", { type: "button", class: "quiet", "aria-pressed": "false", click: () => { press(down); form.hidden = false; reason.focus(); send(-1); } }, words.not_helpful);
    press({ 1: up, [-1]: down }[given]);
    return [up, down, form];
  }

  async copy() {
    const lines = this.result.citations.map((citation) =>
      `[${citation.n}] ${[citation.title, where(citation), citation.document].filter(Boolean).join(" — ")}\n    “${citation.quote}”`);
    const text = [this.question, "", this.result.answer, "", ...(lines.length ? [`${words.sources}:`, ...lines] : [])].join("\n").trim();
    await copy(text, words.copied);
  }

  /** A question that has no answer: it is being answered elsewhere, or that was broken off. */
  leave(state, { stop, retry }) {
    this.end();
    this.say(words[`unanswered_${state}`]);
    const button = state === "running" ? ["stop_button", stop] : ["retry", retry];
    this.tools.replaceChildren(node("button", { type: "button", click: button[1] }, words[button[0]]));
  }

  stop() {
    this.end();
    this.say(words.stopped);
  }

  fail(message, retry) {
    this.end();
    this.say("");
    this.outcome.hidden = false;
    this.outcome.textContent = say("failed", { message });
    this.tools.replaceChildren(node("button", { type: "button", click: retry }, words.retry));
  }
}
