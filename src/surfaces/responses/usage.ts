import type { WriteUsage } from "../passing/billed.ts";

export const writeResponsesUsage: WriteUsage = ({ input, cacheRead, cacheWrite, output, reasoning }) => {
  const prompt = input + cacheRead + cacheWrite;
  return {
    input_tokens: prompt,
    input_tokens_details: { cached_tokens: cacheRead, cache_write_tokens: cacheWrite },
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: reasoning },
    total_tokens: prompt + output,
  };
};
