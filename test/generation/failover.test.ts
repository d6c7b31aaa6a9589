import { describe, expect, test } from "bun:test";
import { type Host, SURFACE_NAMES, type SurfaceName } from "../../src/catalog/catalog.ts";
import {
  closeAfterHead,
  closeBeforeHead,
  closeInsideHead,
  emptyOk,
  headThenSilence,
  json,
  rateLimited,
  resetAfterHead,
  resetBeforeHead,
  silence,
  sse,
  status,
} from "../fakes/behaviours.ts";
import { ManualClock } from "../fakes/clock.ts";
import { type Behaviour, type FakeHost, hostRow, REFUSED_PORT } from "../fakes/host.ts";
import {
  chatError,
  chatText,
  type HostAnswer,
  messagesError,
  messagesText,
  responsesError,
  responsesText,
} from "../fakes/transcripts.ts";
import { openedPerTest } from "./serving.ts";
import { heldNano, openTestGateway, read, requestBody } from "./test-gateway.ts";

const ANSWERS: Record<SurfaceName, HostAnswer> = {
  "chat.completions": chatText(),
  responses: responsesText(),
  messages: messagesText(),
};
const FIRST_ERRORS = {
  "chat.completions": [chatError()],
  responses: [responsesError()].flat(),
  messages: [messagesError()],
};

/** Each way in which a host fails before its first token. */
const FAILURES: Record<string, (surface: SurfaceName, stream: boolean) => Behaviour | "refused"> = {
  "refuses the connection": () => "refused",
  "resets before the head": resetBeforeHead,
  "closes before the head": closeBeforeHead,
  "closes inside the head": closeInsideHead,
  "closes after the head": closeAfterHead,
  "resets after the head": resetAfterHead,
  "answers 401": () => status(401),
  "answers 403": () => status(403),
  "answers 404": () => status(404),
  "answers 408": () => status(408),
  "answers 410, as hosts do that have given a model up": () => status(410),
  "answers 429": () => rateLimited(7),
  "answers 498, as Groq does without capacity": () => status(498),
  "answers 400 for want of credit": () =>
    status(400, {}, "Your credit balance is too low to access the Anthropic API."),
  "answers 413 at its tokens a minute": () =>
    json({ error: { message: "Request too large", type: "tokens", code: "rate_limit_exceeded" } }, 413),
  "answers 500": () => status(500),
  "answers 502": () => status(502),
  "answers 503": () => status(503),
  "answers an empty 200": emptyOk,
  "answers with an error": (surface, stream) =>
    stream ? sse(FIRST_ERRORS[surface]) : json({ error: { message: "overloaded", type: "server_error" } }),
  "is silent": silence,
  "sends a head and is silent": headThenSilence,
};
const SILENT = new Set(["is silent", "sends a head and is silent"]);

const FIRST_TOKEN_MS = 30_000;

const MODES = [
  ["streamed", true, false],
  ["streamed, on hosts that cannot", true, true],
  ["whole", false, false],
] as const;

const { startHost } = openedPerTest();

async function hostThat(
  behaviour: Behaviour | "refused",
  row: Partial<Host>,
): Promise<{ row: Host; host: FakeHost | null }> {
  if (behaviour === "refused")
    return { row: hostRow({ url: `http://127.0.0.1:${REFUSED_PORT}` }, row), host: null };
  const host = await startHost(() => behaviour);
  return { row: hostRow(host, row), host };
}

for (const surface of SURFACE_NAMES) {
  for (const [mode, stream, noStream] of MODES) {
    describe(`${surface}, ${mode}`, () => {
      const isStream = stream && !noStream;
      const speaking = { speaks: [surface], quirks: { noStream } };
      const fine = () => {
        const { events, whole } = ANSWERS[surface];
        return isStream ? sse(events) : json(whole);
      };

      for (const [name, failure] of Object.entries(FAILURES)) {
        for (const position of [1, 2, 3]) {
          const title =
            position < 3
              ? `host ${position} of 3 ${name}: the next one serves, each host saw one request`
              : `host 3 of 3 ${name}: an error says that three were tried, and nothing is charged`;
          test(title, async () => {
            const clock = new ManualClock();
            const parts = await Promise.all(
              [1, 2, 3].map((at) => {
                const behaviour =
                  at < position ? status(503) : at === position ? failure(surface, isStream) : fine();
                return hostThat(behaviour, { id: `h${at}`, ...speaking });
              }),
            );
            const gateway = await openTestGateway(
              parts.map(({ row }) => row),
              {
                clock,
                settings: {
                  attempts: {
                    firstTokenMs: FIRST_TOKEN_MS,
                    maxHosts: 3,
                    hedgeMs: null,
                    chunkGapMs: 120_000,
                    totalMs: 1_200_000,
                  },
                },
              },
            );
            const answering = gateway.send(surface, requestBody(surface, { stream }));
            if (SILENT.has(name)) {
              await parts[position - 1]!.host!.arrived(0);
              // The hosts that are left share the rest of the time.
              clock.advance(FIRST_TOKEN_MS / (4 - position));
            }
            const answer = await answering;
            const text = await read(answer);
            const receipt = gateway.receipt(answer);
            if (position < 3) {
              expect(answer.status).toBe(200);
              expect(text).toContain("Hello");
              expect(receipt).toMatchObject({ state: "settled", host: `h${position + 1}` });
              expect(receipt.cost_usd).toBeGreaterThan(0);
            } else {
              const code = SILENT.has(name) ? "request_timeout" : "model_unavailable";
              expect(JSON.parse(text).error).toMatchObject({
                code,
                message: expect.stringContaining("3 hosts were tried"),
              });
              expect(receipt).toMatchObject({ state: "failed", host: null, cost_usd: 0, error_code: code });
            }
            const tried = Math.min(position + 1, 3);
            expect(receipt.attempts).toHaveLength(tried);
            for (const [index, { host }] of parts.entries()) {
              if (host !== null) expect(host.requests.length).toBe(index < tried ? 1 : 0);
            }
            expect(await heldNano(gateway)).toBe(0 as never);
            expect(gateway.faults).toEqual([]);
            await gateway.close();
          });
        }
      }

      test("a pooled connection that the host had closed costs nothing: the same host serves", async () => {
        const { row, host } = await hostThat(fine(), { id: "h1", ...speaking });
        const gateway = await openTestGateway([row]);
        for (const how of ["close", "reset"] as const) {
          await read(await gateway.send(surface, requestBody(surface, { stream })));
          host!.dropConnections(how);
          const answer = await gateway.send(surface, requestBody(surface, { stream }));
          expect(answer.status).toBe(200);
          await read(answer);
          expect(gateway.receipt(answer).attempts).toHaveLength(1);
        }
        await gateway.close();
      });

      test("a fourth host is never tried", async () => {
        const parts = await Promise.all(
          [1, 2, 3, 4].map((at) => hostThat(at === 4 ? fine() : status(500), { id: `h${at}`, ...speaking })),
        );
        const gateway = await openTestGateway(parts.map(({ row }) => row));
        const answer = await gateway.send(surface, requestBody(surface, { stream }));
        expect(answer.status).toBe(503);
        expect(parts[3]!.host!.requests.length).toBe(0);
        await gateway.close();
      });

      test("a host's verdict on the request goes to the client at once, its sentence kept", async () => {
        const verdict = await hostThat(
          json({ error: { message: "temperature must be at most 2", param: "temperature" } }, 400),
          { id: "h1", ...speaking },
        );
        const spare = await hostThat(fine(), { id: "h2", ...speaking });
        const gateway = await openTestGateway([verdict.row, spare.row]);
        const answer = await gateway.send(surface, requestBody(surface, { stream }));
        expect(answer.status).toBe(400);
        const { error } = JSON.parse(await read(answer));
        expect(error).toMatchObject({ code: "invalid_request", param: "temperature" });
        expect(error.message).toContain("temperature must be at most 2");
        expect(spare.host!.requests.length).toBe(0);
        await gateway.close();
      });
    });
  }
}
