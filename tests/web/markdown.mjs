// Renders Markdown as GitHub does, one document per line: JSON strings in, JSON trees of HTML out.
//
// micromark and its extensions are tested against GitHub's own parser; remark-github links
// mentions, issues and commits as github.com does. Raw HTML is parsed as a browser parses it, and
// nothing is sanitised: any dangerous output is a failure.

import { createInterface } from "node:readline";
import rehypeRaw from "rehype-raw";
import remarkGfm from "remark-gfm";
import remarkGithub from "remark-github";
import remarkParse from "remark-parse";
import remarkRehype from "remark-rehype";
import { unified } from "unified";

const processor = unified()
  .use(remarkParse)
  .use(remarkGfm)
  .use(remarkGithub, { repository: "octo/fleet" })
  .use(remarkRehype, { allowDangerousHtml: true })
  .use(rehypeRaw);

const slim = (node) => ({
  type: node.type,
  tagName: node.tagName,
  properties: node.properties,
  value: node.value,
  children: node.children?.map(slim),
});

for await (const line of createInterface({ input: process.stdin })) {
  const tree = await processor.run(processor.parse(JSON.parse(line)));
  process.stdout.write(`${JSON.stringify(slim(tree))}\n`);
}
