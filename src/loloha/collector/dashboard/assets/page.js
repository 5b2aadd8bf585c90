// Building what the page holds. Text only ever becomes a text node: a label cannot turn into markup.

export const byId = (id) => document.getElementById(id);

export function make(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) node.setAttribute(name, value);
  }
  node.append(...children.filter((child) => child !== null));
  return node;
}

// Only what differs, so that a reader's focus and a screen reader's place survive a poll.
export function say(id, text) {
  const node = byId(id);
  if (node.textContent !== text) node.textContent = text;
}

export function show(id, visible) {
  byId(id).hidden = !visible;
}

export function options(select, choices, chosen) {
  const wanted = JSON.stringify(choices);
  if (select.dataset.choices !== wanted) {
    select.dataset.choices = wanted;
    select.replaceChildren(...choices.map(([value, text]) => make("option", { value }, text)));
  }
  select.value = String(chosen);
}

export function tiles(id, entries) {
  byId(id).replaceChildren(
    ...entries.map(([name, value, more]) =>
      make("div", {}, make("dt", {}, name), make("dd", {}, make("strong", {}, value), make("span", {}, more ?? ""))),
    ),
  );
}

export function list(id, texts) {
  byId(id).replaceChildren(
    ...texts.map((text) => {
      const [head, tail] = split(text);
      return make("li", {}, head ? make("strong", {}, head) : null, tail);
    }),
  );
}

// "Repetition: every report …" -> its first words in bold.
function split(text) {
  const colon = text.indexOf(":");
  return colon > 0 && colon < 60 ? [text.slice(0, colon + 1), text.slice(colon + 1)] : ["", text];
}

// A table, beside its chart. In details it is built when they are opened: most readers never do.
export function fillTable(id, { caption, head, rows }) {
  const place = byId(id);
  const details = place.closest("details");
  const build = () => {
    if (details && !details.open) return;
    const cell = (text, column) =>
      column === 0 ? make("th", { scope: "row" }, text) : make("td", {}, text);
    const table = make(
      "table",
      {},
      make("caption", {}, caption),
      make("thead", {}, make("tr", {}, ...head.map((text) => make("th", { scope: "col" }, text)))),
      make("tbody", {}, ...rows().map((row) => make("tr", {}, ...row.map(cell)))),
    );
    const scroll = make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption }, table);
    place.replaceChildren(scroll);
  };
  if (details) details.ontoggle = build;
  build();
}
