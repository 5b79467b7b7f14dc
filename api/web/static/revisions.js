// The revisions of a document: when each was in force, what it said, and what changed between two of them.

import { call } from "./api.js";
import { date, moment, node, notice, number, percent, say, size, tell, words } from "./dom.js";
import { warningText } from "./states.js";

// Words, single Chinese characters, and what stands between them.
const TOKEN = /\p{Script=Han}|[\p{L}\p{N}]+|\s+|./gu;

// --- the list -------------------------------------------------------------------------------------------------------

const cell = (label, ...children) => node("td", { role: "cell", "data-label": label }, ...children);

function inForce(revision, next) {
  const from = revision.in_force_from ? say("valid_from", { date: date(revision.in_force_from) }) : words.valid_always;
  const until = revision.effective_to ?? null;
  if (until) return `${from} · ${say("valid_until", { date: date(until) })}`;
  return next ? `${from} · ${say("followed_by", { number: number(next.number) })}` : from;
}

function remarks(revision) {
  const lines = revision.warnings.map(warningText);
  const shares = Object.values(revision.confidence ?? {});
  if (shares.length) {
    const mean = shares.reduce((sum, share) => sum + share, 0) / shares.length;
    lines.push(tell("ocr_pages", shares.length, { share: percent(mean) }));
  }
  return lines.map((line) => node("span", { class: "reason" }, line));
}

function row(revision, next) {
  return node("tr", { role: "row" },
    node("th", { role: "rowheader", scope: "row" }, node("a", { href: `?view=read&revision=${revision.number}` }, say("revision", { number: number(revision.number) }))),
    cell(words.col_stored, moment(revision.created_at)),
    cell(words.col_in_force, inForce(revision, next)),
    cell(words.supersedes, revision.supersedes ?? ""),
    cell(words.col_pages, number(revision.pages)),
    cell(words.col_chunks, number(revision.chunks)),
    cell(words.col_size, size(revision.size)),
    cell(words.warnings, ...remarks(revision)));
}

function table(revisions) {
  const heads = [words.col_revision, words.col_stored, words.col_in_force, words.supersedes, words.col_pages, words.col_chunks, words.col_size, words.warnings];
  return node("table", { class: "revisions", role: "table" },
    node("thead", { role: "rowgroup" }, node("tr", { role: "row" }, ...heads.map((head) => node("th", { scope: "col", role: "columnheader" }, head)))),
    node("tbody", { role: "rowgroup" }, ...revisions.map((revision, index) => row(revision, revisions[index - 1]))));
}

// --- comparing two --------------------------------------------------------------------------------------------------

/** The texts of a passage and of what took its place, the words between their common beginning and end marked. */
function changedWords(before, after) {
  const [left, right] = [before.match(TOKEN) ?? [], after.match(TOKEN) ?? []];
  let start = 0;
  while (start < left.length && start < right.length && left[start] === right[start]) start += 1;
  let end = 0;
  while (end < Math.min(left.length, right.length) - start && left.at(-1 - end) === right.at(-1 - end)) end += 1;
  const marked = (tokens) => [
    tokens.slice(0, start).join(""),
    node("mark", {}, tokens.slice(start, tokens.length - end).join("")),
    tokens.slice(tokens.length - end).join(""),
  ];
  return [marked(left), marked(right)];
}

function changeBlock(piece, parts) {
  return node(piece.op === "added" ? "ins" : "del", { class: "piece" },
    node("span", { class: "op" }, words[`diff_${piece.op}`]),
    node("span", { class: "where" }, piece.heading_path.join(" › ")),
    node("p", {}, ...parts));
}

function sameBlock(pieces) {
  const headings = [...new Set(pieces.map((piece) => piece.heading_path.at(-1)).filter(Boolean))];
  return node("details", { class: "piece same" },
    node("summary", {}, [words.diff_same, headings.join(", ")].filter(Boolean).join(" · ")),
    ...pieces.map((piece) => node("div", {}, node("span", { class: "where" }, piece.heading_path.join(" › ")), node("p", {}, piece.text.trim()))));
}

function pieceBlocks(pieces) {
  const blocks = [];
  for (let at = 0; at < pieces.length; at += 1) {
    const [piece, next] = [pieces[at], pieces[at + 1]];
    if (piece.op === "same") {
      let end = at;
      while (pieces[end + 1]?.op === "same") end += 1;
      blocks.push(sameBlock(pieces.slice(at, end + 1)));
      at = end;
    } else if (piece.op === "removed" && next?.op === "added") {
      const [before, after] = changedWords(piece.text.trim(), next.text.trim());
      blocks.push(changeBlock(piece, before), changeBlock(next, after));
      at += 1;
    } else blocks.push(changeBlock(piece, [piece.text.trim()]));
  }
  return blocks;
}

function choice(name, label, revisions, chosen) {
  const options = revisions.map((revision) => node("option", { value: revision.number, selected: revision.number === chosen },
    `${say("revision", { number: number(revision.number) })}, ${date(revision.created_at)}`));
  return node("label", {}, label, " ", node("select", { name }, ...options));
}

function comparing(item, revisions) {
  const result = node("div", { class: "diff", role: "region", "aria-label": words.compare, tabindex: "-1" });
  const compare = async (event) => {
    event.preventDefault();
    const { from, to } = Object.fromEntries(new FormData(event.target));
    try {
      const { pieces } = await call(`/v1/documents/${item.id}/diff?from=${from}&to=${to}`);
      const same = pieces.every((piece) => piece.op === "same");
      result.replaceChildren(...(same ? [node("p", { class: "hint" }, words.diff_none)] : pieceBlocks(pieces)));
      result.focus();
    } catch (error) { notice(error.message); }
  };
  const form = node("form", { class: "compare", submit: compare },
    choice("from", words.compare_from, revisions, revisions[1].number),
    choice("to", words.compare_to, revisions, revisions[0].number),
    node("button", { type: "submit" }, words.compare));
  return [node("h3", {}, words.compare_title), form, result];
}

/** The revisions of a document, the newest first, and the means to compare two. */
export function revisionsView(item, revisions) {
  if (!revisions.length) return [node("p", { class: "hint" }, words.no_revisions)];
  return [table(revisions), ...(revisions.length > 1 ? comparing(item, revisions) : [node("p", { class: "hint" }, words.one_revision)])];
}
