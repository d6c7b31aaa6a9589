// OpenAI's Agents SDK for JavaScript, as it comes.
import { Agent, Runner, setTracingDisabled, tool } from "@openai/agents-core";
import { OpenAIResponsesModel, OpenAIResponsesWSModel } from "@openai/agents-openai";
import OpenAI from "openai";
import { z } from "zod";

const [baseURL, apiKey, name, transport, history] = process.argv.slice(2);
setTracingDisabled(true);
const client = new OpenAI({ baseURL, apiKey, maxRetries: 0 });
const model =
  transport === "ws" ? new OpenAIResponsesWSModel(client, name) : new OpenAIResponsesModel(client, name);
let calls = 0;
const step = tool({
  name: "step",
  description: "Takes a step.",
  parameters: z.object({ n: z.number() }),
  execute: async () => `step ${++calls} done`,
});
const agent = new Agent({ name: "walker", instructions: "Take all steps.", model, tools: [step] });
const beganMs = performance.now();
const result = await new Runner().run(agent, `Go. ${"word ".repeat(Number(history) / 5)}`, {
  stream: process.env.STREAMED === "1",
  maxTurns: 40,
});
if (process.env.STREAMED === "1") await result.completed;
console.log(
  JSON.stringify({ calls, ms: Math.round(performance.now() - beganMs), output: result.finalOutput }),
);
await model.close?.();
process.exit(0);
