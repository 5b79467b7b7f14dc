// The Ask page: the question box, the thread, the list of conversations.

import { call, events } from "./api.js";
import { date, find, list, moment, node, notice, number, receiptText, say, words } from "./dom.js";
import "./frame.js";
import { lookAgain } from "./live.js";
import { Turn } from "./turn.js";

const form = find("#ask-form");
const box = find("#question");
const thread = find("#thread");
const welcome = find("#welcome");
const stopButton = find("#stop");
const askButton = find("#ask");
const scope = find("#collection");
const brief = find("#brief");
const state = { session: new URLSearchParams(location.search).get("session"), running: null, sessions: [], turns: [] };
const report = (error) => notice(error.message);

// --- asking ---------------------------------------------------------------------------------------------------------

function busy(controller) {
  state.running = controller;
  stopButton.hidden = !controller;
  askButton.disabled = Boolean(controller);
}

async function ensureSession(question, signal) {
  if (state.session) return;
  const session = await call("/v1/sessions", { method: "POST", body: { question }, signal });
  setSession(session.id);
  drawAround(session);
}

function setSession(id) {
  state.session = id;
  const url = new URL(location.href);
  if (id) url.searchParams.set("session", id);
  else url.searchParams.delete("session");
  url.searchParams.delete("question");
  history.replaceState(history.state, "", url);
}

const handlers = {
  status: (turn, data) => turn.say(data.text),
  source: (turn, data) => turn.addSource(data),
  token: (turn, data) => turn.addText(data.text),
  answered: (turn, data) => turn.finish(data),
  refused: (turn, data) => turn.finish(data),
  failed: (turn, data) => turn.fail(data.message, () => ask(turn.question)),
};

async function ask(question) {
  if (state.running || !question) return;
  const turn = new Turn(question);
  const controller = new AbortController();
  welcome.hidden = true;
  thread.append(turn.element);
  state.turns.push(turn);
  box.value = "";
  busy(controller);
  turn.element.scrollIntoView({ block: "start" });
  try {
    await ensureSession(question, controller.signal);
    turn.session = state.session;
    const body = {
      question, session_id: state.session, ...(scope.value && { collections: [scope.value] }), ...(brief.checked && { mode: "brief" }),
    };
    for await (const { event, data } of events("/v1/ask", body, controller.signal)) handlers[event]?.(turn, data);
    if (!turn.over) turn.fail(words.error_network, () => ask(question));
  } catch (error) {
    if (error.name === "AbortError") turn.stop();
    else turn.fail(error.message, () => ask(question));
  } finally {
    busy(null);
    box.focus({ preventScroll: true });
    loadSessions().catch(report);
  }
}

// A question sent before this script was loaded came back in the address.
box.value = new URLSearchParams(location.search).get("question") ?? "";

form.addEventListener("submit", (event) => {
  event.preventDefault();
  ask(box.value.trim());
});
box.addEventListener("keydown", (event) => {
  // While an input method composes (Chinese), Enter picks a candidate; 229 is how some browsers say so.
  if (event.key !== "Enter" || event.shiftKey || event.isComposing || event.keyCode === 229) return;
  event.preventDefault();
  form.requestSubmit();
});
stopButton.addEventListener("click", () => state.running?.abort());

// --- welcome --------------------------------------------------------------------------------------------------------

async function loadOverview() {
  const overview = await call("/v1/overview");
  const names = overview.collections.map((collection) => collection.name);
  scope.append(...names.map((name) => node("option", { value: name }, name)));
  scope.closest("label").hidden = names.length < 2;
  find("#overview").textContent = overview.documents
    ? say("overview", { documents: number(overview.documents), collections: list(names), date: date(overview.updated_at) })
    : words.overview_empty;
  find("#suggestions").hidden = !overview.questions.length;
  find("#suggestions ul").replaceChildren(...overview.questions.map((question) =>
    node("li", {}, node("button", { type: "button", click: () => ask(question) }, question))));
}

// --- conversations --------------------------------------------------------------------------------------------------

function drawSessions() {
  const wanted = find("#sessions-search").value.trim().toLowerCase();
  const shown = state.sessions.filter((session) => session.title.toLowerCase().includes(wanted));
  find("#sessions-empty").hidden = state.sessions.length > 0;
  find("#sessions").replaceChildren(...shown.map((session) => node("li", { "aria-current": session.id === state.session && "true" },
    node("a", { href: `/?session=${session.id}`, title: session.title, click: (event) => { event.preventDefault(); openSession(session.id).catch(report); } }, session.title),
    node("button", { type: "button", class: "quiet", "aria-label": `${words.rename}: ${session.title}`, click: () => renameSession(session).catch(report) }, words.rename),
    node("button", { type: "button", class: "quiet", "aria-label": `${words.delete}: ${session.title}`, click: () => deleteSession(session).catch(report) }, words.delete))));
}

async function loadSessions() {
  state.sessions = (await call("/v1/sessions")).sessions;
  drawSessions();
}

async function openSession(id) {
  state.running?.abort();
  const { session, turns, unanswered, readings } = await call(`/v1/sessions/${id}`);
  setSession(id);
  welcome.hidden = turns.length > 0 || Boolean(unanswered);
  state.turns = turns.map((stored) => {
    const turn = new Turn(stored.question);
    turn.session = id;
    turn.finish(stored);
    return turn;
  });
  thread.replaceChildren(...state.turns.map((turn) => turn.element));
  if (unanswered) thread.append(leftTurn(id, unanswered).element);
  drawAround(session, readings);
  drawSessions();
  box.focus({ preventScroll: true });
}

/** The last question where it has no answer. */
function leftTurn(id, { state: became, question }) {
  const turn = new Turn(question);
  const stop = async () => {
    await call(`/v1/sessions/${id}/cancel`, { method: "POST" }).catch(report);
    turn.leave("cancelled", { retry });
  };
  const retry = () => { turn.element.remove(); ask(question); };
  turn.leave(became, { stop, retry });
  return turn;
}

/** Show what was decided about the answers here that wait for approval; while none does, nothing is asked for. */
async function lookForDecisions() {
  const waiting = new Map(state.turns.filter((turn) => turn.waits).map((turn) => [turn.result.turn_id, turn]));
  if (!waiting.size) return;
  const { turns } = await call(`/v1/sessions/${state.session}`);
  for (const stored of turns) {
    const turn = waiting.get(stored.turn_id);
    if (!turn || stored.outcome === "waiting") continue;
    turn.finish(stored);
    notice(stored.outcome === "rejected" ? words.decided_rejected : words.decided_approved);
  }
}

/** What stands above a conversation: who looked into it, and its way out. */
function drawAround(session, readings = []) {
  find("#around").hidden = !session;
  find("#conversation-title").textContent = session?.title ?? "";
  find("#export").href = `/v1/sessions/${session?.id}/export`;
  find("#export-docx").href = `/v1/sessions/${session?.id}/export?format=docx`;
  find("#readings").replaceChildren(...readings.map(({ reader, at, reason }) =>
    node("li", {}, say("was_read", { reader, at: moment(at), reason }))));
}

async function renameSession(session) {
  const title = prompt(words.rename_prompt, session.title)?.trim();
  if (!title) return;
  await call(`/v1/sessions/${session.id}`, { method: "PATCH", body: { title } });
  await loadSessions();
}

async function deleteSession(session) {
  if (!confirm(say("delete_session_confirm", { title: session.title, turns: number(session.turns) }))) return;
  const receipt = await call(`/v1/sessions/${session.id}`, { method: "DELETE" });
  notice(say("session_deleted", { receipt: receiptText(receipt.counts) }));
  if (session.id === state.session) startOver();
  await loadSessions();
}

function startOver() {
  state.running?.abort();
  setSession(null);
  state.turns = [];
  thread.replaceChildren();
  drawAround(null);
  welcome.hidden = false;
  drawSessions();
  box.focus();
}

find("#new-session").addEventListener("click", startOver);
find("#sessions-search").addEventListener("input", drawSessions);
find("#sessions-fold").open = matchMedia("(min-width: 64rem)").matches;

document.addEventListener("forked", ({ detail: session }) => {
  notice(words.forked);
  openSession(session.id).then(loadSessions).catch(report);
});

loadOverview().catch(report);
loadSessions().catch(report);
lookAgain(lookForDecisions);
if (state.session) openSession(state.session).catch(() => startOver());
