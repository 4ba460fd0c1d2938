// Drives the agent with the official TypeScript SDK, which decodes every message by its schema, and prints one JSON
// object with what it saw: node sdk_client.mjs SDK_DIRECTORY COMMAND ARGUMENT…
import { spawn } from "node:child_process";
import { pathToFileURL } from "node:url";
import { Readable, Writable } from "node:stream";
import { setTimeout as pause } from "node:timers/promises";
import path from "node:path";

const [sdk, command, ...argv] = process.argv.slice(2);
const { client, methods, ndJsonStream } = await import(pathToFileURL(path.join(sdk, "dist/v1/stable/acp.js")));

const complaints = [];
for (const level of ["error", "warn"]) console[level] = (...words) => complaints.push(words.map(String).join(" "));

const agent = spawn(command, argv, { stdio: ["pipe", "pipe", "pipe"] });
agent.stderr.on("data", (bytes) => complaints.push(`stderr: ${bytes}`));
const stream = ndJsonStream(Writable.toWeb(agent.stdin), Readable.toWeb(agent.stdout));

const updates = {};
const app = client({ name: "test" }).onNotification(methods.client.session.update, ({ params }) => {
  (updates[params.sessionId] ??= []).push(params.update.sessionUpdate);
});

const seen = await app.connectWith(stream, async (context) => {
  const hello = await context.request(methods.agent.initialize, { protocolVersion: 1, clientCapabilities: {} });
  const sessions = [];
  for (let cursor; ; ) {
    const page = await context.request(methods.agent.session.list, cursor === undefined ? {} : { cursor });
    sessions.push(...page.sessions);
    if ((cursor = page.nextCursor ?? undefined) === undefined) break;
  }
  const loads = {};
  for (const { sessionId, cwd } of sessions) {
    await context.request(methods.agent.session.load, { sessionId, cwd, mcpServers: [] });
    const atAnswer = updates[sessionId].length;
    await pause(300);
    loads[sessionId] = { atAnswer, later: updates[sessionId].length };
  }
  let unknown;
  try {
    await context.request(methods.agent.session.load, { sessionId: "no:such", cwd: "/", mcpServers: [] });
  } catch (error) {
    unknown = error.code;
  }
  const created = await context.request(methods.agent.session.new, { cwd: "/", mcpServers: [] });
  const prompt = [{ type: "text", text: "/list" }];
  const { stopReason } = await context.request(methods.agent.session.prompt, { sessionId: created.sessionId, prompt });
  await context.request(methods.agent.session.close, { sessionId: created.sessionId });
  return { agentInfo: hello.agentInfo, sessions, loads, unknown, stopReason, updates };
});

agent.stdin.end();
const exit = await new Promise((resolve) => agent.on("close", resolve));
process.stdout.write(JSON.stringify({ ...seen, exit, complaints }));
