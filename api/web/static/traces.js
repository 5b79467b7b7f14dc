// How answers came about: the last runs, and one of them step by step for who says why.

import { call } from "./api.js";
import { find, locale, moment, node, notice, number, say, words } from "./dom.js";
import "./frame.js";

const table = find("#runs");
const form = find("#reason-form");
const place = find("#trace");
const report = (error) => notice(error.message);
const seconds = (ms, digits = 1) => (ms == null ? "" : new Intl.NumberFormat(locale, { minimumFractionDigits: digits, maximumFractionDigits: digits }).format(ms / 1000));

// --- the list -------------------------------------------------------------------------------------------------------

const became = (run) => (run.state === "finished" && words[`run_${run.outcome}`]) || say(`run_${run.state}`, { code: run.code ?? "" });

function row(run) {
  const numbers = [[words.col_calls, number(run.model_calls)], [words.col_tokens, number(run.prompt_tokens + run.completion_tokens)], [words.col_seconds, seconds(run.ms)]];
  const name = say("trace_of", { user: run.user, at: moment(run.started_at) });
  return node("tr", {},
    node("th", { scope: "row" }, moment(run.started_at)), node("td", {}, run.user), node("td", {}, became(run)),
    ...numbers.map(([label, value]) => node("td", { class: "number", "data-label": label }, value)),
    node("td", {}, node("button", { type: "button", class: "quiet", "aria-label": `${words.trace_read}: ${name}`, click: () => askWhy(run, name) }, words.trace_read)));
}

async function load() {
  const user = new FormData(find("#runs-form")).get("user").trim();
  const { runs } = await call(`/v1/runs${user ? `?${new URLSearchParams({ user })}` : ""}`);
  table.tBodies[0].replaceChildren(...runs.map(row));
  table.hidden = !runs.length;
  find("#runs-empty").hidden = runs.length > 0;
}

// --- one of them ----------------------------------------------------------------------------------------------------

let wanted = null;

function askWhy(run, name) {
  wanted = run;
  place.hidden = true;
  find("#reason-for").textContent = name;
  form.hidden = false;
  find("#reason").focus();
}

// What of a step stands first, where it is there.
const FIRST = ["prompt", "query", "path", "reason", "outcome", "subtopic"];
const rankOf = ([name]) => (FIRST.includes(name) ? FIRST.indexOf(name) : FIRST.length);

const plain = (value) => (Array.isArray(value) ? value.map(plain).join(", ") : String(value));
const isPlain = (value) => value == null || typeof value !== "object" || (Array.isArray(value) && value.every(isPlain));

function told(data) {
  const entries = Object.entries(data).filter(([, value]) => value != null && value !== "").sort((a, b) => rankOf(a) - rankOf(b));
  const short = entries.filter(([, value]) => isPlain(value));
  const long = entries.filter(([, value]) => !isPlain(value));
  return [
    node("dl", {}, ...short.map(([name, value]) => node("div", {}, node("dt", {}, name), node("dd", {}, plain(value))))),
    ...long.map(([name, value]) => node("details", {},
      node("summary", {}, Array.isArray(value) ? `${name} (${number(value.length)})` : name),
      node("pre", {}, JSON.stringify(value, null, 2)))),
  ];
}

function show({ run, question, steps, turn }) {
  place.replaceChildren(
    node("h2", {}, question),
    node("p", { class: "hint" }, [run.user, moment(run.started_at), run.mode, became(run)].join(" · ")),
    node("p", {}, turn ? turn.answer : words.trace_no_answer),
    node("table", { class: "steps" },
      node("thead", {}, node("tr", {}, ...[words.col_seconds, words.col_step, words.col_what].map((head) => node("th", { scope: "col" }, head)))),
      node("tbody", {}, ...steps.map((step) => node("tr", {},
        node("td", { class: "number" }, seconds(step.at_ms, 2)), node("th", { scope: "row" }, step.kind), node("td", {}, ...told(step.data)))))));
  place.hidden = false;
  place.focus();
}

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  try {
    const reason = new FormData(form).get("reason").trim();
    const trace = await call(`/v1/runs/${wanted.id}/trace`, { method: "POST", body: { reason } });
    form.hidden = true;
    form.reset();
    show(trace);
  } catch (error) { report(error); }
});
find("#reason-cancel").addEventListener("click", () => { form.hidden = true; });
find("#runs-form").addEventListener("submit", (event) => { event.preventDefault(); load().catch(report); });
load().catch(report);
