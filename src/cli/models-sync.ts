import { statSync } from "node:fs";
import type { ModelListAnswer, RestoredAnswer } from "../api/model-lists.ts";
import { type ListedRows, readModelList } from "../config/model-list-formats.ts";
import { PRESETS, type Preset, presentPresets } from "../config/provider-presets.ts";
import type { CommandResult } from "./actions.ts";
import type { Client } from "./client.ts";
import { whyUnanswered } from "./connection-errors.ts";
import { type CommandContext, counted, printable, readText } from "./console.ts";
import { CommandFailure, EXIT } from "./failure.ts";

interface SyncOptions {
  /** Whose list it is; without a source, the host is asked for its own. */
  readonly host?: string | undefined;
  readonly match?: readonly string[] | undefined;
  readonly accept?: readonly string[] | undefined;
  readonly apply?: boolean | undefined;
  readonly undo?: boolean | undefined;
}

/** Shows what a model list would change, and changes it if that is asked for: in all processes, without a restart. */
export async function syncModels(
  client: Client,
  source: string | undefined,
  options: SyncOptions,
  context: CommandContext,
): Promise<CommandResult> {
  if (options.undo === true) return undo(client);
  const { text, host, from } = await sourceOf(source, options.host ?? null, context);
  const list = readModelList(text, { host, idOf: await idsOf(client, host) });
  if (typeof list === "string") throw new CommandFailure(EXIT.found, `${from} is no list of models: ${list}`);
  const { rows, refused } = matching(list, options.match);
  const answer = await client.post<ModelListAnswer>("/admin/models", {
    source: from,
    models: JSON.stringify(rows),
    accept: options.accept ?? [],
    apply: options.apply === true,
  });
  const changes = [
    ...answer.changes.filter(({ change, model }) => change !== "gone" || isMatch(model, options.match)),
    ...refused.map(({ model, why }) => ({
      model,
      host: host ?? "",
      change: "refused" as const,
      differences: [],
      doubts: [why],
      applied: false,
    })),
  ];
  const shown = { ...answer, changes };
  const isApplied = options.apply === true;
  const lines = [...changes.flatMap(linesOf), ...summary(shown, isApplied)];
  return [shown, lines, isApplied ? whatWaits(shown) : null];
}

function whatWaits({ changes, pending_nodes }: ModelListAnswer): CommandFailure | null {
  const held = changes.filter(isHeld).map(({ model }) => printable(model));
  if (held.length > 0)
    return new CommandFailure(
      EXIT.found,
      `${counted(held.length, "model")} held back: ${held.join(", ")}`,
      "Apply those that are right by name: --accept <model>.",
    );
  if (pending_nodes.length === 0) return null;
  return new CommandFailure(
    EXIT.found,
    `not applied yet at ${pending_nodes.join(", ")}`,
    "A node applies it within a second of reaching the store; `gateway nodes list` shows them.",
  );
}

async function undo(client: Client): Promise<CommandResult> {
  const done = await client.post<RestoredAnswer>("/admin/models/undo");
  const line =
    done.restored === 0
      ? `Version ${done.version} is in force: the models of the configuration alone, as before the first list.`
      : `Version ${done.version} is in force, with the models of version ${done.restored}.`;
  return [done, [line]];
}

interface Source {
  readonly text: string;
  readonly host: string | null;
  /** As the record names it. */
  readonly from: string;
}

async function sourceOf(
  source: string | undefined,
  host: string | null,
  context: CommandContext,
): Promise<Source> {
  if (source === undefined) return ownList(host, context);
  if (!/^https?:\/\//.test(source)) return { text: fileText(source), host, from: source };
  // Its list is known by its address.
  const preset = PRESETS.find(({ baseUrl }) => source.startsWith(`${baseUrl}/`));
  return {
    text: await fetched(source, {}, context),
    host: host ?? preset?.id ?? null,
    from: withoutQuery(source),
  };
}

/** A query may hold a key. */
const withoutQuery = (address: string): string => address.split("?", 1)[0]!;

async function ownList(host: string | null, context: CommandContext): Promise<Source> {
  const preset = PRESETS.find(({ id }) => id === host);
  if (preset === undefined) {
    throw new CommandFailure(
      EXIT.usage,
      host === null ? "no list was named" : `the address of ${host}'s list is not known`,
      `Name a file or an address, or with --host one of ${PRESETS.map(({ id }) => id).join(", ")}.`,
    );
  }
  const address = `${preset.baseUrl}/models`;
  const query = preset.id === "anthropic" ? "?limit=1000" : "";
  return {
    text: await fetched(address + query, headersOf(preset, context), context),
    host: preset.id,
    from: address,
  };
}

function headersOf(preset: Preset, { env }: CommandContext): Record<string, string> {
  const key = presentPresets(env).includes(preset) ? env[preset.env]!.trim() : null;
  const own = { ...preset.headers };
  if (key === null) return own;
  return {
    ...own,
    ...(preset.auth === "x-api-key" ? { "x-api-key": key } : { authorization: `Bearer ${key}` }),
  };
}

/** OpenRouter's list has about 2 MB. */
const MAX_LIST_BYTES = 16 * 1024 * 1024;
const ANSWER_MS = 60_000;

const tooLong = (name: string): CommandFailure =>
  new CommandFailure(
    EXIT.found,
    `${name} has more than ${MAX_LIST_BYTES} bytes, which no list of models has`,
  );

function fileText(path: string): string {
  if ((statSync(path, { throwIfNoEntry: false })?.size ?? 0) > MAX_LIST_BYTES) throw tooLong(path);
  return readText(path);
}

async function fetched(
  url: string,
  headers: Record<string, string>,
  context: CommandContext,
): Promise<string> {
  const name = withoutQuery(url);
  try {
    // A redirect would carry the key to strangers.
    const response = await context.fetch(url, {
      headers,
      redirect: "manual",
      signal: AbortSignal.timeout(ANSWER_MS),
    });
    if (!response.ok) throw new CommandFailure(EXIT.unreachable, `${name} answered ${response.status}`);
    const pieces: Uint8Array[] = [];
    let bytes = 0;
    for await (const piece of response.body ?? []) {
      bytes += piece.length;
      if (bytes > MAX_LIST_BYTES) throw tooLong(name);
      pieces.push(piece);
    }
    return Buffer.concat(pieces).toString("utf8");
  } catch (error) {
    if (error instanceof CommandFailure) throw error;
    throw new CommandFailure(EXIT.unreachable, `no list from ${name}: ${whyUnanswered(error)}`);
  }
}

interface ConfigRows {
  readonly models: readonly {
    readonly id: string;
    readonly routes: readonly { host: string; model: string }[];
  }[];
}

/** What the gateway calls the models of a host. */
async function idsOf(client: Client, host: string | null): Promise<(model: string) => string | null> {
  if (host === null) return () => null;
  const { models } = await client.get<ConfigRows>("/admin/config");
  const author = PRESETS.find(({ id }) => id === host)?.author;
  const ids = new Map(
    models.flatMap(({ id, routes }) =>
      routes.flatMap((route) => (route.host === host ? [[route.model, id] as const] : [])),
    ),
  );
  return (model) => ids.get(model) ?? (author === undefined ? null : `${author}/${model.toLowerCase()}`);
}

const isMatch = (model: string, match: readonly string[] = []): boolean =>
  match.length === 0 || match.some((part) => model.includes(part));

const matching = ({ rows, refused }: ListedRows, match: readonly string[] | undefined): ListedRows => ({
  rows: rows.filter((row) => isMatch(String((row as { id?: unknown }).id), match)),
  refused: refused.filter(({ model }) => isMatch(model, match)),
});

type Change = ModelListAnswer["changes"][number];

const isHeld = ({ change, doubts, applied }: Change): boolean =>
  (change === "new" || change === "changed") && doubts.length > 0 && !applied;

function linesOf(change: Change): string[] {
  const { model, host, differences, doubts } = change;
  const name = `${WORDS[change.change]}  ${printable(model)}${host === "" ? "" : ` at ${printable(host)}`}`;
  const reasons = change.applied
    ? []
    : doubts.map((doubt) => `  ${isHeld(change) ? "held back" : "because"}: ${printable(doubt)}`);
  return [name, ...differences.map((one) => `  ${printable(one)}`), ...reasons];
}

const WORDS: Readonly<Record<Change["change"], string>> = {
  new: "new    ",
  changed: "changed",
  kept: "in file",
  refused: "refused",
  gone: "gone   ",
};

function summary({ version, applied, changes, unchanged }: ModelListAnswer, apply: boolean): string[] {
  const held = changes.filter(isHeld).length;
  const ready =
    changes.filter(({ change, applied: done }) => !done && (change === "new" || change === "changed"))
      .length - held;
  const counts = `${counted(unchanged, "model")} unchanged, ${counted(held, "model")} held back.`;
  if (applied) return [`${counts} Version ${version} is in force, in all processes: --undo goes back.`];
  const next = ready > 0 ? ` --apply would apply ${counted(ready, "model")}.` : " There is nothing to apply.";
  return [`${counts} Nothing was changed.${apply && ready === 0 ? " There is nothing to apply." : next}`];
}
