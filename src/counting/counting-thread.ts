import { countPromptTokens } from "../tokens/count.ts";
import { Families } from "../tokens/families.ts";
import { boundFiles } from "../tokens/files.ts";
import type { Count, CountWork } from "./counting.ts";

/** Counts off the event loop: see counting.ts. */
declare const self: Worker;

const families = new Families();

self.onmessage = async ({ data }: MessageEvent<CountWork>) => {
  const counter = await families.get(data.family);
  const before = process.threadCpuUsage();
  const tokens = count(data);
  const { user, system } = process.threadCpuUsage(before);
  self.postMessage({ tokens, ms: (user + system) / 1_000 } satisfies Count);

  function count(work: CountWork): number | null {
    if (work.what === "answer") return work.texts.reduce((sum, text) => sum + counter.count(text), 0);
    const json = JSON.parse(new TextDecoder().decode(work.body)) as Record<string, unknown>;
    return work.what === "text" ? countPromptTokens(json, counter) : boundFiles(json);
  }
};
