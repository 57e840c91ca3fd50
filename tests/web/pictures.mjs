// Makes the pictures of the guide: a comment on a pull request as GitHub shows it, or the first
// screen of a page of -o html. One JSON job per line in, one JSON result out. UPDATE_PICTURES=1
// saves them (tests/it/pictures.rs).

import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";
import chromium from "@sparticuz/chromium";
import puppeteer from "puppeteer-core";
import rehypeRaw from "rehype-raw";
import remarkGfm from "remark-gfm";
import remarkParse from "remark-parse";
import remarkRehype from "remark-rehype";
import { unified } from "unified";

const own = process.env.CHROMIUM;
const executablePath = own || (await chromium.executablePath());
const browser = await puppeteer.launch({ executablePath, args: ["--no-sandbox"], headless: own ? true : "shell" });

const processor = unified().use(remarkParse).use(remarkGfm).use(remarkRehype, { allowDangerousHtml: true }).use(rehypeRaw);

/** How github.com looks, as far as a comment needs it. */
const GITHUB = `
body { margin: 0; padding: 20px; background: #fff; color: #1f2328; font: 14px/1.5 system-ui, "Segoe UI", "Noto Sans", Helvetica, Arial, sans-serif; }
main { border: 1px solid #d1d9e0; border-radius: 6px; padding: 16px; }
p, ul, table, details { margin: 0 0 16px; }
ul { padding-left: 2em; }
code { padding: 0.2em 0.4em; border-radius: 6px; background: #eff1f3; font: 85%/1.45 ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; }
table { border-collapse: collapse; font-size: 13px; }
th, td { padding: 5px 10px; border: 1px solid #d1d9e0; text-align: left; }
tr:nth-child(2n) td { background: #f6f8fa; }`;

/** Builds the elements of a tree in the page. */
function built(tree, style) {
  const made = (node) => {
    if (node.type === "text") return document.createTextNode(node.value);
    if (node.type !== "element") return document.createTextNode("");
    const element = document.createElement(node.tagName);
    element.append(...node.children.map(made));
    return element;
  };
  const sheet = document.createElement("style");
  sheet.textContent = style;
  document.head.append(sheet);
  const main = document.createElement("main");
  main.append(...tree.children.map(made));
  document.body.append(main);
}

for await (const line of createInterface({ input: process.stdin })) {
  const { markdown, page: file, to, width, most } = JSON.parse(line);
  const page = await browser.newPage();
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: "light" }]);
  await page.setViewport({ width, height: most });
  if (file) await page.goto(pathToFileURL(file).href);
  else await page.evaluate(built, await processor.run(processor.parse(markdown)), GITHUB);
  await new Promise((done) => setTimeout(done, 300));
  const all = await page.evaluate(() => document.documentElement.scrollHeight);
  const height = Math.min(all, most);
  await page.screenshot({ path: to, clip: { x: 0, y: 0, width, height }, captureBeyondViewport: true });
  await page.close();
  process.stdout.write(`${JSON.stringify({ width, height })}\n`);
}
await browser.close();
