import type { Counted } from "./counting.ts";
import { countPromptTokens } from "./tokens/count.ts";
import { boundFiles } from "./tokens/files.ts";

/** Counts prompts off the event loop: see counting.ts. */
declare const self: Worker;

self.onmessage = ({ data }: MessageEvent<{ id: number; body: Uint8Array; counted: Counted }>) => {
  const json = JSON.parse(new TextDecoder().decode(data.body)) as Record<string, unknown>;
  const tokens = data.counted === "text" ? countPromptTokens(json) : boundFiles(json);
  self.postMessage({ id: data.id, tokens });
};
