// OpenAI's client for JavaScript, as it comes: a loop of tools over WebSocket, or with a request for each call.
import OpenAI from "openai";
import { ResponsesWS } from "openai/resources/responses/ws";

const [baseURL, apiKey, model, transport, history] = process.argv.slice(2);
const client = new OpenAI({ baseURL, apiKey, maxRetries: 0 });
const tools = [
  {
    type: "function",
    name: "step",
    strict: false,
    parameters: { type: "object", properties: { n: { type: "number" } } },
  },
];
const first = [
  { type: "message", role: "user", content: `Take all steps. ${"word ".repeat(Number(history) / 5)}` },
];
const common = { model, tools, store: false };

const ws = transport === "ws" ? new ResponsesWS(client) : null;
async function overSocket(request) {
  ws.send({ type: "response.create", ...request });
  for await (const message of ws.stream()) {
    if (message.type !== "message") {
      if (message.type === "error" || message.type === "close") throw new Error(JSON.stringify(message));
      continue;
    }
    const event = message.message;
    if (event.type === "error" || event.type === "response.failed") throw new Error(JSON.stringify(event));
    if (event.type === "response.completed") return event.response;
  }
}
async function overHttp(request) {
  for await (const event of await client.responses.create({ ...request, stream: true }))
    if (event.type === "response.completed") return event.response;
}
const beganMs = performance.now();
let [calls, input, whole, previous] = [0, first, first, undefined];
for (;;) {
  const response =
    ws === null
      ? await overHttp({ ...common, input: whole })
      : await overSocket({
          ...common,
          input,
          ...(previous === undefined ? {} : { previous_response_id: previous }),
        });
  const made = response.output.filter(({ type }) => type === "function_call");
  if (made.length === 0) break;
  calls += made.length;
  input = made.map(({ call_id }) => ({
    type: "function_call_output",
    call_id,
    output: `step ${calls} done`,
  }));
  whole = [...whole, ...response.output, ...input];
  previous = response.id;
}
console.log(JSON.stringify({ calls, ms: Math.round(performance.now() - beganMs) }));
ws?.close();
process.exit(0);
