// Drives the bridge with the official TypeScript SDK, which decodes every message by its schema, and prints one JSON
// object with what it saw: node typescript_sdk.mjs SDK_DIRECTORY SCENARIO COMMAND ARGUMENT…
import { spawn } from "node:child_process";
import { appendFileSync } from "node:fs";
import path from "node:path";
import { Readable, Writable } from "node:stream";
import { setTimeout as pause } from "node:timers/promises";
import { pathToFileURL } from "node:url";

const [sdk, facts, command, ...argv] = process.argv.slice(2);
const { client, methods, ndJsonStream } = await import(pathToFileURL(path.join(sdk, "dist/v1/stable/acp.js")));
const scenario = JSON.parse(facts);

const complaints = [];
for (const level of ["error", "warn"]) console[level] = (...words) => complaints.push(words.map(String).join(" "));

const agent = spawn(command, argv, { stdio: ["pipe", "pipe", "pipe"], cwd: scenario.editor });
agent.stderr.on("data", (bytes) => complaints.push(`stderr: ${bytes}`));
const stream = ndJsonStream(Writable.toWeb(agent.stdin), Readable.toWeb(agent.stdout));

const updates = {};
let heard;
const renamed = new Promise((resolve) => (heard = resolve));
const app = client({ name: "test" }).onNotification(methods.client.session.update, ({ params }) => {
  (updates[params.sessionId] ??= []).push(params.update);
  if (params.update.title === scenario.title) heard(params.sessionId);
});

const seen = await app.connectWith(stream, async (context) => {
  const hello = await context.request(methods.agent.initialize, { protocolVersion: 1, clientCapabilities: {} });
  const here = { cwd: scenario.editor, mcpServers: [] };
  const load = (sessionId) => context.request(methods.agent.session.load, { ...here, sessionId });

  const sessions = [];
  for (let cursor; ; ) {
    const page = await context.request(methods.agent.session.list, cursor === undefined ? {} : { cursor });
    sessions.push(...page.sessions);
    if ((cursor = page.nextCursor ?? undefined) === undefined) break;
  }

  const atAnswer = {};
  for (const { sessionId } of sessions) {
    await load(sessionId);
    atAnswer[sessionId] = updates[sessionId].length;
  }
  await pause(300);
  const later = Object.fromEntries(Object.entries(updates).map(([sessionId, all]) => [sessionId, all.length]));

  appendFileSync(scenario.transcript, scenario.line);
  const renamedSession = await Promise.race([renamed, pause(15000, null, { ref: false })]);

  const unknown = await load(scenario.unknown).catch(({ code, message }) => ({ code, message }));

  const created = await context.request(methods.agent.session.new, here);
  const prompt = [{ type: "text", text: "/list keys" }];
  const { stopReason } = await context.request(methods.agent.session.prompt, { sessionId: created.sessionId, prompt });
  await context.request(methods.agent.session.close, { sessionId: created.sessionId });
  const browsed = updates[created.sessionId];

  await context.request(methods.agent.session.delete, { sessionId: scenario.load });
  const inTheEnd = (await context.request(methods.agent.session.list, {})).sessions;
  return { hello, sessions, atAnswer, later, renamedSession, unknown, stopReason, browsed, updates, inTheEnd };
});

agent.stdin.end();
const exit = await new Promise((resolve) => agent.on("close", resolve));
process.stdout.write(JSON.stringify({ ...seen, exit, complaints }));
