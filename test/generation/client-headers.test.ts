import { expect, test } from "bun:test";
import { clientHeaders } from "../../src/generation/client-headers.ts";

const ROWS: [name: string, passes: boolean][] = [
  ["anthropic-version", true],
  ["anthropic-beta", true],
  ["openai-beta", true],
  ["x-stainless-lang", true],
  ["user-agent", true],
  ["http-referer", true],
  ["x-title", true],
  ["x-session-id", true],
  ["x-client-request-id", true],
  ["session_id", true],
  ["conversation_id", true],
  ["originator", true],
  ["openai-organization", false],
  ["openai-project", false],
  ["anthropic-workspace-id", false],
  ["anthropic-organization-id", false],
  ["anthropic-user-profile-id", false],
  ["authorization", false],
  ["x-api-key", false],
  ["api-key", false],
  ["cookie", false],
  ["x-forwarded-for", false],
  ["x-litellm-api-key", false],
  ["idempotency-key", false],
];
test.each(ROWS)("the client's %s reaches the host: %s", (name, passes) => {
  expect(Object.keys(clientHeaders(new Headers({ [name]: "v" })))).toEqual(passes ? [name] : []);
});
