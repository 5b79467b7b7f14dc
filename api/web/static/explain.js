// Why a search found what it found: the terms, both lists side by side, their fusion, the passages with their matches.

import { call } from "./api.js";
import { date, find, list, locale, node, notice, number, percent, say, tell, where, words } from "./dom.js";
import "./frame.js";

const SHOWN = 10;
const SUGGESTED = 20;
// What the server takes: characters that documents are looked for by, documents a page, documents that narrow a search.
const [LONGEST, ALL, MOST] = [200, 1000, 100];
const TYPING_MS = 250;
const form = find("#explain");
const place = find("#explained");
const score = (value, digits = 2) =>
  new Intl.NumberFormat(locale, { minimumFractionDigits: digits, maximumFractionDigits: digits }).format(value);

// --- what is asked --------------------------------------------------------------------------------------------------

async function body() {
  const { q, collection, document: named, media_type, language, as_of, as_group } = Object.fromEntries(new FormData(form));
  return {
    query: q,
    ...(collection && { collections: [collection] }),
    ...(named.trim() && { documents: await documentsCalled(named.trim()) }),
    ...(media_type && { media_types: [media_type] }),
    ...(language && { languages: [language] }),
    ...(as_of && { as_of }),
    ...(as_group.trim() && { as_group }),
  };
}

/** Documents whose title or path holds these words. */
async function documentsWith(text, limit) {
  const { documents } = await call(`/v1/documents?${new URLSearchParams({ q: text.slice(0, LONGEST), limit })}`);
  return documents;
}

/** The ids of the documents of this path, or else of this title. */
async function documentsCalled(name) {
  const found = await documentsWith(name, ALL);
  const called = found.filter((one) => one.path === name);
  const ids = (called.length ? called : found.filter((one) => one.title === name)).map((one) => one.id);
  if (!ids.length) throw new Error(words.explain_no_document);
  return ids.slice(0, MOST);
}

async function suggest(text) {
  const found = text ? await documentsWith(text, SUGGESTED) : [];
  find("#documents-known").replaceChildren(...found.map(({ path, title }) => node("option", { value: path }, title)));
}

// --- what is shown --------------------------------------------------------------------------------------------------

const section = (title, ...children) => node("section", {}, node("h2", {}, title), ...children);

function reach(found) {
  const left = say("explain_left", {
    documents: tell("documents_total", found.documents),
    passages: tell("explain_passages", found.chunks),
    day: date(found.filters.as_of),
  });
  const also = Object.entries(found.synonyms).map(([word, others]) => say("explain_also", { word, others: list(others) }));
  return [left, ...also].map((line) => node("p", {}, line));
}

function termRow(term) {
  return node("tr", {},
    node("th", { scope: "row" }, term.text, term.added ? node("span", { class: "badge" }, words.explain_added) : null),
    ...[number(term.counts), number(term.chunks), score(term.idf), score(term.weight)]
      .map((value) => node("td", { class: "number" }, value)));
}

function terms(found) {
  if (!found.terms.length) return node("p", { class: "hint" }, words.explain_no_terms);
  const heads = [words.explain_counts, words.explain_chunks, words.explain_idf, words.explain_weight];
  return node("table", { class: "terms" },
    node("thead", {}, node("tr", {}, node("th", { scope: "col" }, words.explain_term),
      ...heads.map((head) => node("th", { scope: "col", class: "number" }, head)))),
    node("tbody", {}, ...found.terms.map(termRow)));
}

function listedItem(one) {
  return node("li", { value: one.rank },
    node("span", { class: "listed" },
      node("a", { href: `/?document=${one.document_id}&passage=${one.chunk_id}` }, one.title),
      node("b", { class: "score" }, score(one.score, 3))),
    node("span", { class: "where" }, where(one)),
    one.matched.length ? node("span", { class: "matched" }, ...one.matched.map((term) => node("mark", {}, term))) : null);
}

function column(title, hint, listed) {
  const items = listed.map(listedItem);
  const rest = items.slice(SHOWN);
  return node("section", {}, node("h3", {}, title), node("p", { class: "hint" }, hint),
    node("ol", {}, ...items.slice(0, SHOWN)),
    rest.length ? node("details", {}, node("summary", {}, tell("explain_more", rest.length)), node("ol", {}, ...rest)) : null,
    items.length ? null : node("p", { class: "hint" }, words.explain_empty_list));
}

const ranked = (value, rank) =>
  (rank == null ? words.explain_not_listed : say("explain_ranked", { score: score(value), rank: number(rank) }));

function scores(one) {
  const { fused, reranked } = one.hit.scores;
  const facts = [
    [words.explain_by_meaning, ranked(one.by_vector, one.nearest_rank)],
    [words.explain_by_words, ranked(one.by_words, one.lexical_rank)],
    [words.explain_fused, score(fused)],
    ...(reranked == null ? [] : [[words.explain_reranked, score(reranked)]]),
  ];
  return node("dl", {}, ...facts.map(([name, value]) => node("div", {}, node("dt", {}, name), node("dd", {}, value))));
}

function hitItem(one) {
  return node("li", { class: "card", value: one.hit.rank },
    node("h3", {}, node("span", { class: "n" }, number(one.hit.rank)), " ",
      node("a", { href: `/?document=${one.hit.document_id}&passage=${one.hit.chunk_id}` }, one.hit.title)),
    node("p", { class: "where" }, [one.hit.document, where(one.hit)].filter(Boolean).join(" · ")),
    scores(one),
    node("p", { class: "passage" }, ...one.passage.map((piece) => (piece.matched ? node("mark", {}, piece.text) : piece.text))));
}

function draw(found) {
  const meaning = found.exact ? words.explain_exact : words.explain_indexed;
  const fusion = say("explain_fusion", { meaning: percent(1 - found.words), words: percent(found.words) });
  place.replaceChildren(
    section(words.explain_reach, ...reach(found)),
    section(words.explain_terms, terms(found)),
    section(words.explain_lists, node("div", { class: "lists" },
      column(words.explain_by_meaning, meaning, found.nearest), column(words.explain_by_words, words.explain_bm25, found.lexical))),
    section(words.explain_found, node("p", {}, found.hits.length ? fusion : words.explain_nothing),
      node("ol", { class: "hits" }, ...found.hits.map(hitItem))));
}

// --- asking ---------------------------------------------------------------------------------------------------------

async function explain() {
  const status = find("#explain-status");
  status.textContent = words.explain_searching;
  try {
    draw(await call("/v1/search/explain", { method: "POST", body: await body() }));
    status.textContent = "";
  } catch (error) {
    status.textContent = error.message;
    place.replaceChildren();
  }
}

// --- the vectors that are searched ----------------------------------------------------------------------------------

// Commands stand between backticks.
const told = (text) => node("p", {}, ...text.split("`").map((part, at) => (at % 2 ? node("code", {}, part) : part)));

function besideThem(one, running) {
  const passages = tell("explain_passages", one.vectors);
  const values = { model: one.embedder_id, passages, done: number(one.vectors), day: date(one.replaced_at) };
  if (one.role === "previous") return [say("vectors_kept", values), words.vectors_undo];
  if (one.filled) return [say("vectors_ready", values), words.vectors_swap];
  const all = { ...values, passages: tell("explain_passages", one.vectors + one.missing) };
  return running ? [say("vectors_filling", all), words.vectors_wait] : [say("vectors_halted", all), words.vectors_go_on];
}

async function showVectors() {
  const { running, sets: [active, ...others] } = await call("/v1/embedding-sets");
  const passages = active && tell("explain_passages", active.vectors);
  const lines = active ? [say("vectors_searched", { model: active.embedder_id, passages })] : [words.vectors_none];
  const beside = others.flatMap((one) => besideThem(one, running));
  const bar = others.filter((one) => !one.filled)
    .map((one) => node("progress", { value: one.vectors, max: one.vectors + one.missing, "aria-label": words.vectors_title }));
  const place = find("#vectors");
  place.replaceChildren(...[...lines, ...beside].map(told), ...bar);
  place.classList.toggle("banner", others.length > 0);
  place.hidden = false;
}

let typing;
form.elements.document.addEventListener("input", ({ target }) => {
  clearTimeout(typing);
  typing = setTimeout(() => suggest(target.value.trim()).catch((error) => notice(error.message)), TYPING_MS);
});

form.addEventListener("submit", (event) => {
  event.preventDefault();
  const said = [...new FormData(form)].filter(([, value]) => value.trim());
  history.replaceState(null, "", `?${new URLSearchParams(said)}`);
  explain();
});

async function begin() {
  showVectors().catch((error) => notice(error.message));
  const { collections } = await call("/v1/collections");
  form.elements.collection.append(...collections.map(({ name }) => node("option", { value: name }, name)));
  for (const [name, value] of new URLSearchParams(location.search)) {
    if (form.elements[name]) form.elements[name].value = value;
  }
  if (form.elements.q.value) await explain();
}

begin().catch((error) => notice(error.message));
