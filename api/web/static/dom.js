// Small helpers for building pages without markup strings: text never becomes HTML by accident.

export const words = JSON.parse(document.getElementById("words").textContent);
const language = document.documentElement.lang;
// Dates as they are written where the reader is: British English has another order than American.
export const locale = navigator.languages.find((tag) => tag.slice(0, 2) === language.slice(0, 2)) ?? language;

/** The wording for a key, with {placeholders} filled in. */
export function say(key, values = {}) {
  return words[key].replace(/\{(\w+)\}/g, (_, name) => values[name] ?? "");
}

/** The wording for a number of things: `key`_one for one of them, {count} filled in. */
export const tell = (key, count, values = {}) => say(count === 1 ? `${key}_one` : key, { count: number(count), ...values });

/** Make an element: node("a", {href: "/", class: "x"}, "text", child). Functions become event listeners. */
export function node(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child != null && child !== ""));
  return element;
}

export const find = (selector, root = document) => root.querySelector(selector);

export function date(value) {
  if (!value) return "";
  // A plain date has no time zone: shifting it could show the day before.
  const plain = /^\d{4}-\d{2}-\d{2}$/.test(value);
  return new Intl.DateTimeFormat(locale, { dateStyle: "medium", ...(plain && { timeZone: "UTC" }) }).format(new Date(value));
}

/** A moment with its time of day. */
export const moment = (value) =>
  (value ? new Intl.DateTimeFormat(locale, { dateStyle: "medium", timeStyle: "short" }).format(new Date(value)) : "");

/** The time of day only. */
export const clock = (value) => new Intl.DateTimeFormat(locale, { timeStyle: "short" }).format(new Date(value));

const unit = (value, name, unitDisplay, digits = 0) =>
  new Intl.NumberFormat(locale, { style: "unit", unit: name, unitDisplay, maximumFractionDigits: digits }).format(value);

/** A time to come, as coarse as an estimate is: "10 seconds", "4 minutes", "2 hours". */
export function span(seconds) {
  if (seconds < 55) return unit(Math.max(5, Math.ceil(seconds / 5) * 5), "second", "long");
  if (seconds < 3300) return unit(Math.ceil(seconds / 60), "minute", "long");
  return unit(Math.ceil(seconds / 3600), "hour", "long");
}

/** A file's size from its bytes. */
export function size(bytes) {
  return bytes < 2 ** 20 ? unit(Math.max(1, Math.round(bytes / 2 ** 10)), "kilobyte", "short") : unit(bytes / 2 ** 20, "megabyte", "short", 1);
}

export const percent = (share) => new Intl.NumberFormat(locale, { style: "percent" }).format(share);

export const number = (value) => (value == null ? "" : new Intl.NumberFormat(locale).format(value));

/** Join names as the language does: "a, b and c". */
export const list = (names) => new Intl.ListFormat(locale).format(names);

/** What the number of some kind in a receipt counts: "passages". */
export const kindOf = (kind, count) =>
  (count === 1 && words[`count_${kind}_one`]) || (words[`count_${kind}`] ?? kind.replaceAll("_", " "));

/** "3 passages, 1 file" from the counts of a receipt. */
export function receiptText(counts) {
  const parts = Object.entries(counts).filter(([, count]) => count > 0)
    .map(([kind, count]) => `${number(count)} ${kindOf(kind, count)}`);
  return list(parts.length ? parts : ["0"]);
}

let noticeTimer;
/** Tell something in passing, also to a screen reader. */
export function notice(text) {
  const place = find("#notice");
  place.textContent = text;
  clearTimeout(noticeTimer);
  noticeTimer = setTimeout(() => { place.textContent = ""; }, 6000);
}

/** Copy a text and say `done`, or that it did not work. */
export async function copy(text, done) {
  // Browsers have navigator.clipboard over HTTPS and on localhost only; what is selected can be copied everywhere.
  const copied = navigator.clipboard
    ? await navigator.clipboard.writeText(text).then(() => true, () => false)
    : copySelected(text);
  notice(copied ? done : words.copy_failed);
}

function copySelected(text) {
  const focused = document.activeElement;
  const area = node("textarea", { class: "visually-hidden", readonly: true }, text);
  document.body.append(area);
  area.select();
  const copied = document.execCommand("copy");
  area.remove();
  focused?.focus({ preventScroll: true });
  return copied;
}

/** Heading path and page of a hit or citation, for a person. */
export function where(item) {
  const headings = (item.heading_path ?? []).filter((heading) => heading !== item.title).join(" › ");
  return [headings, item.page && say("page", { page: item.page })].filter(Boolean).join(" · ");
}

/** What became of a citation since it was made, for a person; empty while nothing did. */
export function since(item) {
  if (item.origin === "peer") return words.origin_peer;
  return item.standing && item.standing !== "present" ? words[`cited_${item.standing}`] : "";
}

/** From when and until when a document is valid, where that is limited. */
export const validity = (item) => [
  item.effective_from && say("valid_from", { date: date(item.effective_from) }),
  item.effective_to && say("valid_until", { date: date(item.effective_to) }),
  item.newer?.day && say("replaced_from", { date: date(item.newer.day) }),
].filter(Boolean);

/** Dates of a hit or document: validity where it is limited, else the last change. */
export function when(item) {
  const parts = validity(item);
  if (!parts.length && item.updated_at) parts.push(say("updated", { date: date(item.updated_at) }));
  return parts.join(" · ");
}
