// The fleet as a map: one cell per node, in blocks by the chosen label. All cells of a block that
// look the same are one path, so that thousands of cells are drawn as fast as a few.
"use strict";

/** The outline of a cell of this shape, as wide as `s`, with its corner at x, y. */
const SHAPES = {
  square: (x, y, s) => `M${x} ${y}h${s}v${s}h${-s}z`,
  frame: (x, y, s) => {
    const t = tenth(s * 0.24);
    const i = tenth(s - 2 * t);
    return `M${x} ${y}h${s}v${s}h${-s}zM${tenth(x + t)} ${tenth(y + t)}v${i}h${i}v${-i}z`;
  },
  plus: (x, y, s) => {
    const a = tenth(s * 0.32);
    const t = tenth(s - 2 * a);
    return `M${tenth(x + a)} ${y}h${t}v${a}h${a}v${t}h${-a}v${a}h${-t}v${-a}h${-a}v${-t}h${a}z`;
  },
  cross: (x, y, s) => {
    const t = tenth(s * 0.26);
    const h = tenth(s / 2);
    const corners = [[t, 0], [h, h - t], [s - t, 0], [s, t], [h + t, h], [s, s - t], [s - t, s], [h, h + t], [t, s], [0, s - t], [h - t, h], [0, t]];
    return `M${corners.map(([a, b]) => `${tenth(x + a)} ${tenth(y + b)}`).join("L")}z`;
  },
  diamond: (x, y, s) => {
    const h = tenth(s / 2);
    return `M${tenth(x + h)} ${y}l${h} ${h}l${-h} ${h}l${-h} ${-h}z`;
  },
  dot: (x, y, s) => {
    const a = tenth(s * 0.32);
    const t = tenth(s - 2 * a);
    return `M${tenth(x + a)} ${tenth(y + a)}h${t}v${t}h${-t}z`;
  },
};

/** @param {number} number */
function tenth(number) {
  return Math.round(number * 10) / 10;
}

/** The distance between cells. @param {number} nodes */
function pitchFor(nodes) {
  if (nodes <= 150) return 24;
  if (nodes <= 700) return 15;
  if (nodes <= 2000) return 12;
  return nodes <= 8000 ? 9 : 6;
}

const map = {
  /** Cells in the order of the arrow keys. @type {{node: number, block: number, at: number}[]} */
  cells: [],
  /** @type {{columns: number, pitch: number, svg: SVGElement, first: number, size: number}[]} */
  blocks: [],
  /** By node: its most severe state, and whether it is highlighted. */
  kinds: new Uint8Array(report.nodes.length),
  lit: new Uint8Array(report.nodes.length),
  /** The cell pointed at, or -1. */
  cursor: -1,
};

/** The symbol of a kind as a small picture. @param {Kind} kind */
function swatch(kind) {
  const path = drawing("path", { class: kind.tone, d: SHAPES[kind.shape](1, 1, 10) });
  return drawing("svg", { width: 12, height: 12, viewBox: "0 0 12 12", "aria-hidden": "true" }, path);
}

/** Redraws the map. @param {number[]} places @param {number[]} found */
function drawMap(places, found) {
  map.kinds.fill(IDLE);
  map.lit.fill(0);
  for (const place of places) {
    const { node, kind } = rowAt(place);
    if (kind < map.kinds[node]) map.kinds[node] = kind;
  }
  for (const place of found) map.lit[rowAt(place).node] = 1;
  const grouping = report.groupings[filter.group];
  const groups = grouping ? grouping.values.map(() => []) : [];
  const others = [];
  report.nodes.forEach((_, node) => (groups[groupOf(node)] ?? others).push(node));
  const named = groups.map((nodes, value) => ({ name: grouping.values[value], nodes }));
  named.push({ name: grouping ? `no ${grouping.name}` : "all nodes", nodes: others });
  layOut(named.filter(({ nodes }) => nodes.length > 0));
  drawTally(named.filter(({ nodes }) => nodes.length > 0));
}

function layOut(groups) {
  const room = byId("map").clientWidth - 16 || 960;
  const pitch = pitchFor(report.nodes.length);
  map.cells = [];
  map.blocks = [];
  map.cursor = -1;
  const drawn = groups.map(({ name, nodes }, block) => {
    const widest = Math.max(1, Math.floor(room / pitch));
    const wanted = groups.length === 1 ? widest : Math.max(12, Math.ceil(Math.sqrt(nodes.length * 3)));
    const columns = Math.min(widest, wanted, Math.max(nodes.length, 1));
    const svg = drawBlock(nodes, columns, pitch);
    map.blocks.push({ columns, pitch, svg, first: map.cells.length, size: nodes.length });
    nodes.forEach((node, at) => map.cells.push({ node, block, at }));
    svg.addEventListener("pointermove", (event) => point(cellUnder(event, block)));
    svg.addEventListener("click", (event) => lookUp(cellUnder(event, block)));
    const title = element("h3", {}, `${name} `, element("span", {}, spelled(nodes.length)));
    return element("div", { class: "block" }, title, svg);
  });
  byId("map").replaceChildren(...drawn);
}

function drawBlock(nodes, columns, pitch) {
  /** @type {Map<string, string[]>} */
  const paths = new Map();
  const gap = pitch > 8 ? 2 : 1;
  nodes.forEach((node, at) => {
    const kind = report.kinds[map.kinds[node]];
    const [x, y] = [(at % columns) * pitch, Math.floor(at / columns) * pitch];
    const looks = `${kind.tone}${map.lit[node] ? "" : " dim"} ${kind.shape}`;
    if (!paths.has(looks)) paths.set(looks, []);
    paths.get(looks).push(SHAPES[kind.shape](x, y, pitch - gap));
  });
  const [width, height] = [columns * pitch, Math.ceil(nodes.length / columns) * pitch];
  const drawn = [...paths].map(([looks, d]) => drawing("path", { class: looks, d: d.join("") }));
  return drawing("svg", { width, height, viewBox: `-1 -1 ${width + 1} ${height + 1}`, "aria-hidden": "true" }, ...drawn);
}

/** The cell under the pointer, or -1. */
function cellUnder(event, block) {
  const { columns, pitch, svg, first, size } = map.blocks[block];
  const box = svg.getBoundingClientRect();
  const scale = (columns * pitch + 1) / box.width;
  const column = Math.floor((event.clientX - box.left) * scale / pitch);
  const at = Math.floor((event.clientY - box.top) * scale / pitch) * columns + Math.min(column, columns - 1);
  return at < size ? first + at : -1;
}

/** Shows the node of a cell. @param {number} cell */
function point(cell) {
  if (cell === map.cursor || cell < 0) return;
  map.cursor = cell;
  const { node, block, at } = map.cells[cell];
  const { columns, pitch, svg } = map.blocks[block];
  for (const old of byId("map").querySelectorAll(".here")) old.remove();
  svg.append(drawing("rect", {
    class: "here",
    x: (at % columns) * pitch - 0.5,
    y: Math.floor(at / columns) * pitch - 0.5,
    width: pitch - 1,
    height: pitch - 1,
  }));
  byId("cursor").replaceChildren(element("b", {}, report.nodes[node]), ` ${groupWords(node)} `, ...said(node));
}

/** The description of a node. @param {number} node */
function said(node) {
  const places = shown.places.filter((place) => rowAt(place).node === node);
  const told = places.slice(0, 3).map((place) => {
    const { set, kind, wave, why } = rowAt(place);
    const words = [report.sets[set], report.kinds[kind].words, wave > 0 ? `in wave ${wave}` : "", report.whys[why]];
    return words.filter(Boolean).join(", ");
  });
  if (places.length > 3) told.push(`and ${spelled(places.length - 3)} more`);
  return [told.join("; ")];
}

/** Finds a cell's node in the table. @param {number} cell */
function lookUp(cell) {
  if (cell < 0) return;
  byId("search").value = report.nodes[map.cells[cell].node];
  byId("search").dispatchEvent(new Event("input"));
}

/** The cell that a key moves to. @param {KeyboardEvent} event */
function steer(event) {
  const last = map.cells.length - 1;
  const here = Math.max(map.cursor, 0);
  const columns = map.blocks[map.cells[here]?.block]?.columns ?? 1;
  const steps = { ArrowLeft: here - 1, ArrowRight: here + 1, ArrowUp: here - columns, ArrowDown: here + columns, Home: 0, End: last };
  if (event.key in steps) {
    event.preventDefault();
    point(map.cursor < 0 ? 0 : Math.min(last, Math.max(0, steps[event.key])));
  } else if (event.key === "Enter" && map.cursor >= 0) {
    lookUp(map.cursor);
    byId("search").focus();
  }
}

/** Draws the map as a table with counts. */
function drawTally(groups) {
  const grouping = report.groupings[filter.group];
  const heads = [grouping ? grouping.name : "Nodes", ...report.kinds.map((kind) => kind.words)];
  byId("tally").tHead.replaceChildren(element("tr", {}, ...heads.map((head) => element("th", { scope: "col" }, head))));
  const rows = groups.map(({ name, nodes }) => {
    const counts = report.kinds.map(() => 0);
    for (const node of nodes) counts[map.kinds[node]] += 1;
    return element("tr", {}, element("th", { scope: "row" }, name), ...counts.map((count, kind) => element("td", { "data-head": report.kinds[kind].words }, spelled(count))));
  });
  byId("tally").tBodies[0].replaceChildren(...rows);
}
