import { readlinkSync } from "node:fs";
import { setPriority } from "node:os";
import { basename } from "node:path";
import { openingOf } from "../../routing/conversation.ts";
import { withCeiling } from "../../surfaces/messages/changed-request.ts";
import { subjectOf } from "../../surfaces/request/refused-request.ts";
import { compactionRequest } from "../../surfaces/responses/compaction.ts";
import { SURFACES } from "../../surfaces/surfaces.ts";
import { countPromptTokens } from "../../tokens/count.ts";
import { Families } from "../../tokens/families.ts";
import { boundFiles } from "../../tokens/files.ts";
import { invalid, refused } from "../../units/errors/refusal.ts";
import {
  type AnswerCounts,
  type AnswerTexts,
  type Compacted,
  type Count,
  GIVES_WAY,
  type ReadWork,
  type RequestSeen,
  type Work,
} from "./work.ts";

/** Counts and reads off the event loop: see counting.ts. */
declare const self: Worker;

if (process.argv.includes(GIVES_WAY)) giveWay();
const families = new Families();

self.onmessage = async ({ data }: MessageEvent<Work>) => {
  if (data.what === "request") handBack(see(data));
  else if (data.what === "compaction") handBack({ body: compactionRequest(data.body) });
  else if (data.what === "answers") self.postMessage(await countEach(data.answers));
  else self.postMessage(await count(data));
};

const handBack = (done: RequestSeen | Compacted): void =>
  self.postMessage(done, [done.body.buffer as ArrayBuffer]);

async function countEach(answers: readonly AnswerTexts[]): Promise<AnswerCounts> {
  const tokens: number[] = [];
  for (const { texts, family } of answers) {
    const counter = await families.get(family);
    tokens.push(texts.reduce((sum, text) => sum + counter.count(text), 0));
  }
  return { tokens };
}

async function count(work: Exclude<Work, ReadWork | { what: "compaction" | "answers" }>): Promise<Count> {
  const counter = await families.get(work.family);
  const before = process.threadCpuUsage();
  const tokens = () => {
    const json = JSON.parse(new TextDecoder().decode(work.body)) as Record<string, unknown>;
    return work.what === "text" ? countPromptTokens(json, counter) : boundFiles(json);
  };
  const counted = tokens();
  const { user, system } = process.threadCpuUsage(before);
  return { tokens: counted, ms: (user + system) / 1_000 };
}

function see({ body, surface, counting }: ReadWork): RequestSeen {
  const subject = subjectOf(body);
  const request = SURFACES[surface].readRequest(counting ? withCeiling(body) : body);
  if (refused(request)) {
    const { code, message, details } = request;
    return { body, subject, read: { code, message, details } };
  }
  const { body: _, json, outline, list, overrides, ...rest } = request;
  const short = shortOf(json);
  for (const [name, value] of Object.entries(overrides))
    if (value !== undefined && !(name in short)) {
      const { code, message, details } = invalid(name, `is longer than ${SHORT_CHARACTERS} characters`);
      return { body, subject, read: { code, message, details } };
    }
  const opening = openingOf(request);
  return {
    body,
    subject,
    read: { request: { ...rest, overrides, json: short, outline: short, list: null }, opening },
  };
}

/** Taking long ones apart is what the event loop is spared. */
function shortOf(json: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const short = Object.entries(json).filter(([, value]) => JSON.stringify(value).length <= SHORT_CHARACTERS);
  return Object.fromEntries(short);
}

const SHORT_CHARACTERS = 4_096;

/** Only Linux has priorities of threads. */
function giveWay(): void {
  try {
    setPriority(Number(basename(readlinkSync("/proc/thread-self"))), LOW_PRIORITY);
  } catch {
    // It shares the processor as an equal.
  }
}

const LOW_PRIORITY = 10;
