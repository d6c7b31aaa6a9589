/** `count_tokens` takes a Messages request without a ceiling, which every other must have. */
export function withCeiling(body: Uint8Array): Uint8Array {
  try {
    const json = JSON.parse(new TextDecoder().decode(body)) as Record<string, unknown>;
    if (typeof json !== "object" || json === null || "max_tokens" in json) return body;
    return new TextEncoder().encode(JSON.stringify({ ...json, max_tokens: 1 }));
  } catch {
    return body;
  }
}
