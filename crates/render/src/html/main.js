// Connects map, table and their controls.
"use strict";

/** What map and table show now. @type {{places: number[], found: number[]}} */
const shown = { places: [], found: [] };

/** Applies the filter and draws everything. */
function draw() {
  shown.places = rowsOfSet();
  shown.found = matching(shown.places);
  drawMap(shown.places, shown.found);
  drawLegend();
  drawTable(shown.found);
}

/** The legend, which chooses kinds as well. */
function drawLegend() {
  const counts = report.kinds.map(() => 0);
  // As the tiles: a node counts once for each DaemonSet.
  for (const place of shown.places) counts[rowAt(place).kind] += 1;
  const buttons = report.kinds.map((kind, nth) => {
    const button = element("button", { type: "button", "aria-pressed": String(filter.kinds.has(nth)) }, swatch(kind), `${kind.words} `, element("b", {}, spelled(counts[nth])));
    button.addEventListener("click", () => {
      if (!filter.kinds.delete(nth)) filter.kinds.add(nth);
      table.rows = STEP;
      draw();
      byId("legend").children[nth].focus();
    });
    return button;
  });
  byId("legend").replaceChildren(...buttons);
}

/** Fills a select; its values are indices in `names`, or -1 for the first option. */
function choice(id, first, names, chosen, take) {
  const options = [first, ...names].map((name, nth) => element("option", { value: nth - 1 }, name));
  byId(id).append(...options);
  byId(id).value = String(chosen);
  byId(id).addEventListener("change", () => {
    take(Number(byId(id).value));
    table.rows = STEP;
    draw();
  });
}

/** Switches between the system's theme, dark and light. */
function changeTheme() {
  const root = document.documentElement;
  const [theme, words] = { undefined: ["dark", "dark"], dark: ["light", "light"] }[root.dataset.theme] ?? [undefined, "system"];
  if (theme) root.dataset.theme = theme;
  else delete root.dataset.theme;
  byId("theme").textContent = `Theme: ${words}`;
}

function begin() {
  byId("drawn").hidden = false;
  byId("theme").hidden = false;
  choice("set", "all", report.sets, filter.set, (set) => {
    filter.set = set;
    // The label by which the policy of the DaemonSet divides nodes.
    const own = report.keys[set] ?? -1;
    if (own < 0) return;
    filter.group = own;
    byId("group").value = String(own);
  });
  choice("group", "none", report.groupings.map(({ name }) => name), filter.group, (group) => (filter.group = group));
  byId("search").addEventListener("input", () => {
    lookFor(byId("search").value);
    table.rows = STEP;
    draw();
  });
  byId("more").addEventListener("click", () => {
    table.rows += MORE;
    drawTable(shown.found);
  });
  byId("map").addEventListener("keydown", steer);
  byId("theme").addEventListener("click", changeTheme);
  let width = window.innerWidth;
  window.addEventListener("resize", () => {
    if (window.innerWidth !== width) draw();
    width = window.innerWidth;
  });
  // Print all details expanded: they cannot be opened on paper.
  let folded = [];
  window.addEventListener("beforeprint", () => {
    folded = [...document.querySelectorAll("details:not([open])")];
    for (const details of folded) details.open = true;
  });
  window.addEventListener("afterprint", () => {
    for (const details of folded) details.open = false;
  });
  draw();
}

begin();
