// Pictures of pages, and the boxes on them that say where a passage stands.

import { node, number, say } from "./dom.js";

const SHOWN = new Set(["application/pdf", "image/bmp", "image/jpeg", "image/png", "image/tiff", "image/webp"]);

/** Whether there are pictures of a document's pages. */
export const hasPictures = (item) => item.state === "ready" && item.pages > 0 && SHOWN.has(item.media_type);

/** The picture of a page in its frame, which boxes may be added to. */
export function pagePicture(item, page, attributes = {}, revision = null) {
  const query = revision && revision !== item.revision ? `?revision=${revision}` : "";
  const alt = say("page_picture", { page: number(page), title: item.title });
  return node("figure", { class: "page-picture" },
    node("img", { src: `/v1/documents/${item.id}/pages/${page}.png${query}`, alt, ...attributes }));
}

/** The boxes of a passage that are on this page. */
export function boxesOn(page, boxes) {
  return boxes.filter((box) => box.page === page).map((box) => {
    const mark = node("span", { class: "box" });
    Object.assign(mark.style, {
      left: `${box.left * 100}%`, top: `${box.top * 100}%`,
      width: `${(box.right - box.left) * 100}%`, height: `${(box.bottom - box.top) * 100}%`,
    });
    return mark;
  });
}
