#!/usr/bin/env node
// Receives the notifications of `ds-apply --notify`, and starts a program for each, with the document
// on its standard input. A document whose signature is wrong is refused. If the program fails, the
// answer is 500, and ds-apply tries again.
//
//   node receiver.mjs SECRET-FILE PORT PROGRAM [ARGUMENT...]
//
// It listens on this machine only: put it behind a proxy with https, or into a Service of the cluster.
// It needs Node.js 20 or later, and no packages.

import { spawn } from 'node:child_process';
import { createHmac, timingSafeEqual } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';

const [secretFile, port, program, ...words] = process.argv.slice(2);
if (!program) {
  console.error('usage: receiver.mjs SECRET-FILE PORT PROGRAM [ARGUMENT...]');
  process.exit(64);
}
const secret = readFileSync(secretFile, 'utf8').trim();
const LARGEST = 1 << 20;
// Documents that are older are refused: somebody may send an old one again.
const OLDEST_SECONDS = 3600;

createServer(async (request, response) => {
  const status = await handle(request).catch(() => 500);
  response.writeHead(status, { Connection: 'close' }).end();
}).listen(Number(port), '127.0.0.1', function () {
  console.log(`listening on port ${this.address().port}`);
});

async function handle(request) {
  if (request.method !== 'POST') return 405;
  const chunks = [];
  let length = 0;
  for await (const chunk of request) {
    length += chunk.length;
    if (length > LARGEST) return 413;
    chunks.push(chunk);
  }
  const body = Buffer.concat(chunks);
  if (!isSigned(body, request.headers['x-ds-plan-signature-256'] ?? '')) return 401;
  const event = JSON.parse(body);
  // The time of a rehearsal is that of its cluster.
  const age = (Date.now() - Date.parse(event.time)) / 1000;
  if (!event.rehearsal && !(age < OLDEST_SECONDS)) return 400;
  return (await passOn(body)) ? 204 : 500;
}

// Compares in constant time, and the bytes as they came: JSON that is written again differs.
function isSigned(body, signature) {
  const wanted = Buffer.from(`sha256=${createHmac('sha256', secret).update(body).digest('hex')}`);
  const given = Buffer.from(signature);
  return given.length === wanted.length && timingSafeEqual(given, wanted);
}

function passOn(body) {
  return new Promise((resolve) => {
    const child = spawn(program, words, { stdio: ['pipe', 'inherit', 'inherit'] });
    child.on('error', () => resolve(false));
    child.on('close', (code) => resolve(code === 0));
    child.stdin.on('error', () => {});
    child.stdin.end(body);
  });
}
