import type { WriteUsage } from "../passing/billed.ts";

/** Usage at the end of a stream. */
export const writeMessagesUsage: WriteUsage = ({ input, cacheRead, cacheWrite, output, reasoning }) => ({
  input_tokens: input,
  cache_creation_input_tokens: cacheWrite,
  cache_read_input_tokens: cacheRead,
  output_tokens: output,
  output_tokens_details: reasoning > 0 ? { thinking_tokens: reasoning } : null,
  server_tool_use: null,
});

/** Usage of a whole message, as a stream begins with it too. */
export const writeMessageUsage: WriteUsage = (tokens) => ({
  ...writeMessagesUsage(tokens),
  cache_creation: null,
  service_tier: null,
  inference_geo: null,
  speed: null,
});
