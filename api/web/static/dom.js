// Small helpers for building pages without markup strings: text never becomes HTML by accident.

export const words = JSON.parse(document.getElementById("words").textContent);
export const locale = document.documentElement.lang;

/** The wording for a key, with {placeholders} filled in. */
export function say(key, values = {}) {
  return words[key].replace(/\{(\w+)\}/g, (_, name) => values[name] ?? "");
}

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

export const number = (value) => (value == null ? "" : new Intl.NumberFormat(locale).format(value));

/** Join names as the language does: "a, b and c". */
export const list = (names) => new Intl.ListFormat(locale).format(names);

/** "3 passages, 1 file" from the counts of a receipt. */
export function receiptText(counts) {
  const parts = Object.entries(counts).filter(([, count]) => count > 0)
    .map(([kind, count]) => `${number(count)} ${words[`count_${kind}`] ?? kind.replaceAll("_", " ")}`);
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

/** Dates of a hit or document: validity where it is limited, else the last change. */
export function when(item) {
  const parts = [];
  if (item.effective_from) parts.push(say("valid_from", { date: date(item.effective_from) }));
  if (item.effective_to) parts.push(say("valid_until", { date: date(item.effective_to) }));
  if (!parts.length && item.updated_at) parts.push(say("updated", { date: date(item.updated_at) }));
  return parts.join(" · ");
}
