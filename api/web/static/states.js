// What the state of a document is, in words: used by the table and by a document's own page.

import { clock, node, number, say, span, tell, words } from "./dom.js";

export const underWay = (item) => item.state === "queued" || item.state === "processing";

/** Where a document belongs: what an administrator looks for in a long list. */
export const standings = {
  working: underWay,
  failed: (item) => item.state === "failed",
  held: (item) => item.quarantined > 0,
  warned: (item) => item.state === "ready" && item.warnings.length > 0,
  superseded: (item) => item.newer !== null,
  ready: (item) => item.state === "ready",
};

// What an English page says of errors and warnings is the server's own sentence; other languages have theirs by code.
export const reason = (item) => words[`reason_${item.reason_code}`] ?? item.reason;

export function warningText(warning) {
  const wording = `warning_${warning.code}`;
  return wording in words ? say(wording, { count: number(warning.count) }) : warning.text;
}

/** "12 of 80 passages · about 2 minutes left" */
export function progressText({ step, done, total, attempts, next_attempt_at: next, seconds_left: left }) {
  return [
    step === "embedding" ? say("embedded", { done: number(done), total: number(total) }) : "",
    left == null ? "" : say("time_left", { span: span(left) }),
    attempts > 1 ? say("attempt", { number: number(attempts) }) : "",
    next ? say("next_attempt", { time: clock(next) }) : "",
  ].filter(Boolean).join(" · ");
}

export function progressBar({ step, done, total }) {
  return step === "embedding" && total ? node("progress", { max: total, value: done, "aria-hidden": "true" }) : null;
}

/** The state in a word or two; while something is done, which step that is. */
export function label(item) {
  if (underWay(item) && item.progress) return words[`step_${item.progress.step}`];
  if (item.state === "ready" && item.warnings.length) return words.state_warned;
  return words[`state_${item.state}`];
}

const hint = (text) => (text ? node("span", { class: "reason" }, text) : null);

// What can be found while something else is still being done, or could not be.
function meanwhile(item) {
  if (item.state === "ready" || item.searchable === "nothing") return null;
  if (item.state === "failed") return hint(words.earlier_stays);
  return hint(item.searchable === "words" ? words.found_by_words : words.earlier_stays);
}

const MOST_WARNINGS = 2;

/** The warnings in few words: the first told, the others counted. */
export function warningsOf({ warnings }) {
  const more = warnings.length - MOST_WARNINGS;
  const told = warnings.slice(0, MOST_WARNINGS).map((warning) => hint(warningText(warning)));
  return more > 0 ? [...told, hint(tell("more_warnings", more))] : told;
}

/** The state with its reason and progress, as elements. */
export function stateOf(item) {
  const warned = item.state === "ready" && item.warnings.length > 0;
  return [
    node("span", { class: `state ${warned ? "warned" : item.state}` }, label(item)),
    underWay(item) && item.progress ? hint(progressText(item.progress)) : null,
    underWay(item) && item.progress ? progressBar(item.progress) : null,
    item.reason ? hint(reason(item)) : null,
    meanwhile(item),
    item.quarantined ? node("a", { class: "reason held", href: `/documents/${item.id}?view=held` }, tell("held_back", item.quarantined)) : null,
  ].filter(Boolean);
}
