// Why a search found what it found: the terms, both lists side by side, their fusion, the passages with their matches.

import { call } from "./api.js";
import { find, list, locale, node, notice, number, percent, say, tell, where, words } from "./dom.js";
import "./frame.js";

const SHOWN = 10;
const form = find("#explain");
const place = find("#explained");
const score = (value, digits = 2) =>
  new Intl.NumberFormat(locale, { minimumFractionDigits: digits, maximumFractionDigits: digits }).format(value);

// --- what is asked --------------------------------------------------------------------------------------------------

function body() {
  const { q, collection, language, as_of, as_group } = Object.fromEntries(new FormData(form));
  return {
    query: q,
    ...(collection && { collections: [collection] }),
    ...(language && { languages: [language] }),
    ...(as_of && { as_of }),
    ...(as_group.trim() && { as_group }),
  };
}

// --- what is shown --------------------------------------------------------------------------------------------------

const section = (title, ...children) => node("section", {}, node("h2", {}, title), ...children);

function reach(found) {
  const left = say("explain_left", { documents: tell("documents_total", found.documents), passages: tell("explain_passages", found.chunks) });
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
    draw(await call("/v1/search/explain", { method: "POST", body: body() }));
    status.textContent = "";
  } catch (error) {
    status.textContent = error.message;
    place.replaceChildren();
  }
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  const said = [...new FormData(form)].filter(([, value]) => value.trim());
  history.replaceState(null, "", `?${new URLSearchParams(said)}`);
  explain();
});

async function begin() {
  const { collections } = await call("/v1/collections");
  form.elements.collection.append(...collections.map(({ name }) => node("option", { value: name }, name)));
  for (const [name, value] of new URLSearchParams(location.search)) {
    if (form.elements[name]) form.elements[name].value = value;
  }
  if (form.elements.q.value) await explain();
}

begin().catch((error) => notice(error.message));
