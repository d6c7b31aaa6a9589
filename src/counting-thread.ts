import { countPromptTokens } from "./tokens/count.ts";
import { boundFiles } from "./tokens/files.ts";

/** Counts prompts off the event loop: see counting.ts. */
declare const self: Worker;

self.onmessage = ({ data }: MessageEvent<{ id: number; body: Uint8Array }>) => {
  const json = JSON.parse(new TextDecoder().decode(data.body)) as Record<string, unknown>;
  self.postMessage({ id: data.id, count: { text: countPromptTokens(json), files: boundFiles(json) } });
};
