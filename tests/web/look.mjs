// Checks reports in a real browser, one per line: JSON jobs in, JSON results out.
//
// The browser is $CHROMIUM, or the one of an npm package. Reports are opened as files, like a
// downloaded artifact.

import { createInterface } from "node:readline";
import { createRequire } from "node:module";
import { performance } from "node:perf_hooks";
import { readFile } from "node:fs/promises";
import { pathToFileURL } from "node:url";
import chromium from "@sparticuz/chromium";
import puppeteer from "puppeteer-core";

const axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

const own = process.env.CHROMIUM;
const executablePath = own || (await chromium.executablePath());
// Our own pages on a test machine, often as root: the browser's sandbox is not available.
const browser = await puppeteer.launch({ executablePath, args: ["--no-sandbox"], headless: own ? true : "shell" });

/** Opens a page and records its requests and errors. */
async function opened(file, { scheme = "light", width = 1280, javascript = true } = {}) {
  const page = await browser.newPage();
  const faults = [];
  page.on("console", (message) => faults.push(`console: ${message.text()}`));
  page.on("pageerror", (error) => faults.push(`error: ${error.message}`));
  page.on("dialog", (dialog) => {
    faults.push(`dialog: ${dialog.message()}`);
    dialog.dismiss();
  });
  page.on("request", (request) => {
    if (request.url() !== pathToFileURL(file).href) faults.push(`request: ${request.url()}`);
  });
  await page.setJavaScriptEnabled(javascript);
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
  await page.setViewport({ width, height: 900 });
  const begun = performance.now();
  await page.goto(pathToFileURL(file).href);
  // Waits until it is painted, not just loaded.
  if (javascript) await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => setTimeout(done))));
  return { page, faults, milliseconds: performance.now() - begun };
}

/** The serious and critical findings of the accessibility checker. */
async function violations(page) {
  // The page's policy forbids foreign scripts; code evaluated by the debugger is exempt.
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => axe.run(document, { resultTypes: ["violations"] }));
  return violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).slice(0, 3).join(" ")}`);
}

/** What cannot be read: elements outside of the page or cut by their container, small or overlapping
 * labels of charts. Opens everything that is folded. */
function cut(page) {
  return page.evaluate(() => {
    for (const folded of document.querySelectorAll("details")) folded.open = true;
    const faults = [];
    const named = (element) => `<${element.tagName.toLowerCase()} ${element.className.baseVal ?? element.className}> ${element.textContent.slice(0, 40)}`;
    const visible = (element) => element.checkVisibility() && !element.closest(".unseen, .skip");
    for (const element of [...document.body.querySelectorAll("*")].filter(visible)) {
      const { left, right, width } = element.getBoundingClientRect();
      if (width > 0 && (left < -0.5 || right > innerWidth + 0.5)) faults.push(`outside of the page: ${named(element)}`);
      const hides = getComputedStyle(element).overflowX !== "visible" && !element.closest("svg, select, input");
      if (hides && element.scrollWidth > element.clientWidth + 1) faults.push(`cut or to be scrolled: ${named(element)}`);
    }
    for (const chart of document.querySelectorAll(".chart")) {
      const labels = [...chart.querySelectorAll("text")].filter(visible).map((label) => [label, label.getBoundingClientRect()]);
      for (const [nth, [label, box]] of labels.entries()) {
        if (box.height < 9) faults.push(`only ${box.height} pixels high: ${named(label)}`);
        for (const [other, its] of labels.slice(nth + 1)) {
          const apart = box.right <= its.left || its.right <= box.left || box.bottom <= its.top + 2 || its.bottom <= box.top + 2;
          if (!apart) faults.push(`overlap: ${named(label)} and ${named(other)}`);
        }
      }
    }
    return faults;
  });
}

/** The visible state of the table of nodes. */
function table(page) {
  return page.evaluate(() => ({
    heads: [...document.querySelectorAll("#nodes thead th")].map((head) => head.textContent),
    rows: [...document.querySelectorAll("#nodes tbody tr")].map((row) => [...row.cells].map((cell) => cell.textContent)),
    found: document.getElementById("found").textContent,
    dim: document.querySelectorAll("#map .dim").length,
    legend: [...document.querySelectorAll("#legend button")].map((button) => button.textContent),
    blocks: [...document.querySelectorAll("#map h3")].map((title) => title.textContent),
  }));
}

/** The tags, attributes and other parts of the page that could be harmful. */
function anatomy(page) {
  return page.evaluate(() => {
    const tags = new Set();
    const attributes = new Set();
    for (const element of document.querySelectorAll("*")) {
      tags.add(element.tagName.toLowerCase());
      for (const { name, value } of element.attributes) {
        attributes.add(["href", "src", "style"].includes(name) ? `${name}=${value}` : name);
      }
    }
    return { tags: [...tags].sort(), attributes: [...attributes].sort(), text: document.body.innerText };
  });
}

const jobs = {
  /** Errors and accessibility findings, in light and dark, wide and narrow. */
  async inspect({ file, shots }) {
    const faults = [];
    for (const [scheme, width] of [["light", 1440], ["dark", 1440], ["light", 390], ["dark", 390]]) {
      const { page, faults: found } = await opened(file, { scheme, width });
      await page.screenshot({ path: `${shots}-${scheme}-${width}.png`, fullPage: true });
      for (const fault of [...found, ...(await violations(page))]) faults.push(`${scheme} ${width}: ${fault}`);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      if (wide > 0) faults.push(`${scheme} ${width}: ${wide} pixels too wide`);
      for (const fault of await cut(page)) faults.push(`${scheme} ${width}: ${fault}`);
      await page.close();
    }
    return { faults };
  },
  /** Presses, types and chooses; returns the visible table after each step. */
  async drive({ file, steps }) {
    const { page, faults } = await opened(file);
    const seen = [await table(page)];
    for (const [what, target, value] of steps) {
      if (what === "type") {
        await page.focus(target);
        await page.$eval(target, (input) => input.select());
        await page.keyboard.press("Backspace");
        await page.type(target, value);
      } else if (what === "choose") await page.select(target, value);
      else if (what === "focus") await page.focus(target);
      else if (what === "key") await page.keyboard.press(target);
      else if (what === "point") await page.hover(target);
      else if (what === "press") await page.$eval(target, (button) => button.click());
      seen.push({
        ...(await table(page)),
        cursor: await page.$eval("#cursor", (cursor) => cursor.textContent),
        sorted: await page.$$eval("#nodes [aria-sort]", (heads) => heads.map((head) => [head.textContent, head.getAttribute("aria-sort")])),
        focus: await page.evaluate(() => document.activeElement.id || document.activeElement.textContent),
        scheme: await page.evaluate(() => getComputedStyle(document.documentElement).colorScheme),
      });
    }
    await page.close();
    return { seen, faults };
  },
  /** The page in print, and without scripts. */
  async print({ file, shots }) {
    const { page, faults } = await opened(file, { scheme: "dark" });
    await page.emulateMediaType("print");
    await page.screenshot({ path: `${shots}-print.png`, fullPage: true });
    const paper = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const pdf = await page.pdf({ format: "A4" });
    await page.close();
    const still = await opened(file, { javascript: false });
    const { text } = await anatomy(still.page);
    await still.page.close();
    return { faults: [...faults, ...still.faults], paper, bytes: pdf.length, text };
  },
  /** The tiles and the legend: what they count, how many, and their colours. */
  async count({ file }) {
    const { page, faults } = await opened(file);
    const seen = await page.evaluate(() => {
      const tile = (div) => [div.querySelector("dt").textContent, div.querySelector("b").textContent, getComputedStyle(div).borderTopColor];
      const button = (button) => {
        const number = button.querySelector("b").textContent;
        return [button.textContent.slice(0, -number.length).trim(), number, getComputedStyle(button.querySelector("path")).fill];
      };
      return {
        tiles: [...document.querySelectorAll(".tiles > div:not(.none)")].map(tile),
        legend: [...document.querySelectorAll("#legend button")].map(button),
      };
    });
    await page.close();
    return { ...seen, faults };
  },
  /** The parts of the page. */
  async dissect({ file }) {
    const { page, faults } = await opened(file);
    const seen = { ...(await anatomy(page)), faults, ...(await table(page)) };
    await page.close();
    return seen;
  },
  /** The time until it is painted, measured several times. */
  async time({ file, times }) {
    const milliseconds = [];
    for (let nth = 0; nth < times; nth += 1) {
      const { page, milliseconds: taken } = await opened(file);
      milliseconds.push(taken);
      await page.close();
    }
    return { milliseconds };
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const { job, ...details } = JSON.parse(line);
  process.stdout.write(`${JSON.stringify(await jobs[job](details))}\n`);
}
await browser.close();
