import { randomBase58 } from "../../units/base58.ts";
import { type Clock, pause } from "../../units/clock.ts";
import type { RandomBytes } from "../../units/random.ts";
import { record, type SimulatedAnswer, simulatedAnswer } from "./answer.ts";
import { SIMULATED_CHAT } from "./chat.ts";
import type { SimulatedEvent, SimulatedLanguage } from "./language.ts";
import { SIMULATED_MESSAGES } from "./messages.ts";
import { SIMULATED_RESPONSES } from "./responses.ts";

/**
 * A host that needs no provider: a real HTTP server on the loopback interface, spoken to through the same
 * sockets as any other, so that a first request works offline and shows the whole way. It serves one model,
 * which echoes.
 */
export function startSimulatedHost({ clock, random, paceMs = PACE_MS }: SimulatedOptions): SimulatedHost {
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    // A pause between words must not look idle; the gateway has deadlines of its own.
    idleTimeout: 0,
    maxRequestBodySize: BODY_BYTES_MAX,
    fetch: (request) => answer(request, { clock, random, paceMs }),
  });
  return {
    url: `http://127.0.0.1:${server.port}/v1`,
    stop: () => server.stop(true),
  };
}

export interface SimulatedOptions {
  readonly clock: Clock;
  readonly random: RandomBytes;
  /** Between two words. */
  readonly paceMs?: number;
}

export interface SimulatedHost {
  /** Base address, ending in `/v1`. */
  readonly url: string;
  /** Breaks off what is being said. */
  stop(): Promise<void>;
}

export const SIMULATED_MODEL = "echo";
export const SIMULATED_LIMITS = { contextLength: 1_000_000, maxOutputTokens: 8_192 } as const;

const PACE_MS = 8;
/** Above the gateway's own limit, so that this host is never the one to refuse. */
const BODY_BYTES_MAX = 64 * 1024 * 1024;
const ID_CHARACTERS = 24;

const LANGUAGES: readonly SimulatedLanguage[] = [SIMULATED_CHAT, SIMULATED_RESPONSES, SIMULATED_MESSAGES];

async function answer(
  request: Request,
  { clock, random, paceMs }: Required<SimulatedOptions>,
): Promise<Response> {
  const { pathname } = new URL(request.url);
  const language = LANGUAGES.find(({ path }) => path === pathname);
  if (language === undefined || request.method !== "POST") {
    return Response.json(SIMULATED_CHAT.error(404, `Unknown request: ${request.method} ${pathname}`), {
      status: 404,
    });
  }
  const json = await readJson(request);
  const asked = json === null ? "The body is not a JSON object." : language.read(json);
  if (json === null || typeof asked === "string") return refusal(language, 400, String(asked));
  if (asked.model !== SIMULATED_MODEL) {
    return refusal(
      language,
      404,
      `The model '${asked.model}' does not exist; this host serves '${SIMULATED_MODEL}'.`,
    );
  }
  const id = randomBase58(ID_CHARACTERS, random);
  const answer = simulatedAnswer(asked, SIMULATED_LIMITS.maxOutputTokens, id, clock.now());
  if (answer.inputTokens > SIMULATED_LIMITS.contextLength) {
    return refusal(
      language,
      400,
      `The prompt is too long: ${answer.inputTokens} tokens > ${SIMULATED_LIMITS.contextLength} maximum.`,
    );
  }
  return asked.stream ? stream(language, answer, json, clock, paceMs) : Response.json(language.whole(answer));
}

async function readJson(request: Request): Promise<Readonly<Record<string, unknown>> | null> {
  try {
    const json: unknown = await request.json();
    return typeof json === "object" && json !== null && !Array.isArray(json) ? record(json) : null;
  } catch {
    return null;
  }
}

const refusal = (language: SimulatedLanguage, status: number, message: string): Response =>
  Response.json(language.error(status, message), { status });

/** Events up to the next word leave together; the reader's pull and the pace decide when. */
function stream(
  language: SimulatedLanguage,
  answer: SimulatedAnswer,
  json: Readonly<Record<string, unknown>>,
  clock: Clock,
  paceMs: number,
): Response {
  const events = language.events(answer, json);
  const encoder = new TextEncoder();
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      let text = "";
      for (let next = events.next(); ; next = events.next()) {
        if (next.done === true) {
          if (text !== "") controller.enqueue(encoder.encode(text));
          controller.close();
          return;
        }
        text += frame(next.value);
        if (next.value.paced) break;
      }
      controller.enqueue(encoder.encode(text));
      if (paceMs > 0) await pause(clock, paceMs);
    },
    cancel() {
      events.return(undefined);
    },
  });
  return new Response(body, {
    headers: { "content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache" },
  });
}

function frame({ event, data }: SimulatedEvent): string {
  const name = event === null ? "" : `event: ${event}\n`;
  return `${name}data: ${data === "[DONE]" ? data : JSON.stringify(data)}\n\n`;
}
