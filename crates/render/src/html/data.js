// The embedded data of the report, and functions that create elements. Text from outside is only
// set as text: no script parses HTML.
"use strict";

/**
 * @typedef {{words: string, symbol: string, shape: string, tone: string}} Kind
 * @typedef {{name: string, values: string[], of: number[]}} Grouping
 * @typedef {{nodes: string[], groupings: Grouping[], kinds: Kind[], sets: string[], keys: number[], whys: string[],
 *   heads: {kind: string, wave: string, seconds: string},
 *   rows: Record<"set" | "node" | "kind" | "why" | "wave" | "seconds", number[]>}} Told
 */

/** @type {Told} */
const report = JSON.parse(document.getElementById("data").textContent);
for (const [column, runs] of Object.entries(report.rows)) report.rows[column] = repeated(runs);
// Each row has the difference to the node of the one before.
report.rows.node.forEach((difference, at, nodes) => (nodes[at] = difference + (nodes[at - 1] ?? 0)));

/** The numbers of a list in which each is followed by how often it is repeated.
 * @param {number[]} runs */
function repeated(runs) {
  const all = [];
  for (let at = 0; at < runs.length; at += 2) {
    for (let times = runs[at + 1]; times > 0; times -= 1) all.push(runs[at]);
  }
  return all;
}

/** The state of nodes with nothing to show. */
const IDLE = report.kinds.length - 1;

/** The row at this index. Nodes without a row have negative indices.
 * @param {number} place */
function rowAt(place) {
  const { rows } = report;
  if (place < 0) {
    return { set: -1, node: -1 - place, kind: IDLE, why: -1, wave: 0, seconds: -1 };
  }
  return {
    set: rows.set[place],
    node: rows.node[place],
    kind: rows.kind[place],
    why: rows.why[place],
    wave: rows.wave[place],
    seconds: rows.seconds[place],
  };
}

/** An element with these attributes and children; texts become text.
 * @param {string} tag
 * @param {Record<string, string | number>} attributes
 * @param {...(Node | string)} children */
function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, String(value));
  made.append(...children);
  return made;
}

/** The same for a picture. */
function drawing(tag, attributes = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, String(value));
  made.append(...children);
  return made;
}

/** The element of the page with this id. @param {string} id */
function byId(id) {
  return document.getElementById(id);
}

/** 1234 as 1,234. @param {number} number */
function spelled(number) {
  return number.toLocaleString("en");
}

/** `1 node`, `2 nodes`. @param {number} number @param {string} noun */
function counted(number, noun) {
  return `${spelled(number)} ${noun}${number === 1 ? "" : "s"}`;
}
