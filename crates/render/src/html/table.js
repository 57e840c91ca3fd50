// The table of nodes: sorted by a column, with as many rows as requested.
"use strict";

/** Number of rows that are shown at first; the button shows MORE. */
const STEP = 50;

const MORE = 500;

const table = { column: "kind", descending: false, rows: STEP };

/** The rank of each text in alphabetical order. @param {string[]} texts */
function ranks(texts) {
  const order = texts.map((_, nth) => nth).sort((a, b) => texts[a].localeCompare(texts[b], "en", { numeric: true }));
  const places = new Array(texts.length);
  order.forEach((nth, place) => (places[nth] = place));
  return places;
}

const setRanks = ranks(report.sets);
const whyRanks = ranks(report.whys);
/** The longest duration of a node. */
const longest = report.rows.seconds.reduce((most, seconds) => Math.max(most, seconds), 1);

/** Columns: their headings, sort keys and cells. */
const columns = [
  { id: "node", head: () => "Node", by: (row) => row.node, cell: (row) => [report.nodes[row.node]] },
  { id: "group", head: () => report.groupings[filter.group]?.name ?? "", by: (row) => groupOf(row.node), cell: (row) => [groupWords(row.node)] },
  { id: "set", head: () => "DaemonSet", by: (row) => setRanks[row.set] ?? Infinity, cell: (row) => [report.sets[row.set] ?? "–"] },
  { id: "kind", head: () => report.heads.kind, by: (row) => row.kind, cell: (row) => [stateOf(row.kind)] },
  { id: "wave", head: () => report.heads.wave, by: (row) => row.wave || Infinity, cell: (row) => [row.wave > 0 ? String(row.wave) : "–"] },
  { id: "seconds", head: () => report.heads.seconds, by: (row) => row.seconds, cell: (row) => [tookOf(row.seconds)] },
  { id: "why", head: () => "Why", by: (row) => whyRanks[row.why] ?? Infinity, cell: (row) => [report.whys[row.why] ?? ""] },
];

function stateOf(place) {
  const kind = report.kinds[place];
  return element("span", { class: "state" }, swatch(kind), kind.words);
}

function tookOf(seconds) {
  if (seconds < 0) return "–";
  const bar = element("i");
  bar.style.setProperty("--share", String((100 * seconds) / longest));
  return element("span", { class: "took" }, `${spelled(seconds)}s`, bar);
}

/** The columns that this report has. */
function columnsInUse() {
  return columns.filter((column) => column.head() !== "");
}

/** Draws the rows. @param {number[]} found */
function drawTable(found) {
  const inUse = columnsInUse();
  byId("nodes").tHead.replaceChildren(element("tr", {}, ...inUse.map(headOf)));
  const shownRows = sorted(found, inUse).slice(0, table.rows).map(({ row }) =>
    element("tr", {}, ...inUse.map((column) => element("td", { "data-head": column.head() }, ...column.cell(row)))),
  );
  byId("nodes").tBodies[0].replaceChildren(...shownRows);
  const rest = found.length - shownRows.length;
  const first = rest > 0 ? `, the first ${spelled(shownRows.length)} are shown` : "";
  byId("found").textContent = `${counted(found.length, "row")}${first}`;
  byId("more").hidden = rest === 0;
  byId("more").textContent = `Show ${spelled(Math.min(rest, MORE))} more`;
}

function sorted(found, inUse) {
  const column = inUse.find(({ id }) => id === table.column) ?? inUse[0];
  const turn = table.descending ? -1 : 1;
  const keyed = found.map((place) => {
    const row = rowAt(place);
    return { row, key: column.by(row) };
  });
  return keyed.sort((a, b) => {
    if (a.key !== b.key) return a.key < b.key ? -turn : turn;
    return a.row.node - b.row.node || a.row.set - b.row.set;
  });
}

function headOf(column) {
  const button = element("button", { type: "button" }, column.head());
  button.addEventListener("click", () => {
    table.descending = table.column === column.id && !table.descending;
    table.column = column.id;
    drawTable(shown.found);
    const again = columnsInUse().findIndex(({ id }) => id === column.id);
    byId("nodes").tHead.querySelectorAll("button")[again].focus();
  });
  const head = element("th", { scope: "col" }, button);
  if (table.column === column.id) head.setAttribute("aria-sort", table.descending ? "descending" : "ascending");
  return head;
}
