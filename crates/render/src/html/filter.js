// The filter: the rows of the table, and the highlighted cells of the map.
"use strict";

const filter = {
  /** A DaemonSet, or -1 for all. */
  set: -1,
  /** A grouping, or -1 for none. */
  group: report.groupings.length > 0 ? 0 : -1,
  /** Kinds; none means all. @type {Set<number>} */
  kinds: new Set(),
  /** All of these words occur. @type {string[]} */
  words: [],
};

/** For each text, the words that it contains, as bits. @param {string[]} texts */
function wordsIn(texts) {
  return texts.map((text) => {
    const lower = text.toLowerCase();
    return filter.words.reduce((bits, word, nth) => bits | (lower.includes(word) ? 1 << nth : 0), 0);
  });
}

/** The rows of the chosen DaemonSet, and one for each node that has none. */
function rowsOfSet() {
  const { set, node } = report.rows;
  const places = [];
  const told = new Uint8Array(report.nodes.length);
  for (let place = 0; place < set.length; place += 1) {
    if (filter.set === -1 || set[place] === filter.set) {
      places.push(place);
      told[node[place]] = 1;
    }
  }
  for (let nth = 0; nth < told.length; nth += 1) {
    if (!told[nth]) places.push(-1 - nth);
  }
  return places;
}

/** The places that match the filter. @param {number[]} places */
function matching(places) {
  const [nodes, sets, whys] = [report.nodes, report.sets, report.whys].map(wordsIn);
  const all = (1 << filter.words.length) - 1;
  return places.filter((place) => {
    const row = rowAt(place);
    if (filter.kinds.size > 0 && !filter.kinds.has(row.kind)) return false;
    return (nodes[row.node] | (sets[row.set] ?? 0) | (whys[row.why] ?? 0)) === all;
  });
}

/** Sets the search words; at most as many as there are bits. @param {string} text */
function lookFor(text) {
  filter.words = text.toLowerCase().split(/\s+/).filter(Boolean).slice(0, 16);
}

/** The value of the chosen label. @param {number} node */
function groupOf(node) {
  const grouping = report.groupings[filter.group];
  return grouping ? grouping.of[node] : -1;
}

/** The name of that value. @param {number} node */
function groupWords(node) {
  const value = groupOf(node);
  return value === -1 ? "" : report.groupings[filter.group].values[value];
}
