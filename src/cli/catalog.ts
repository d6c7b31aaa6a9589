import type { List } from "../api/answers.ts";
import type { EntryAnswer } from "../api/catalog.ts";
import { findModels } from "../api/find-models.ts";
import { Client, type OwnerOptions, ownerClient } from "./client.ts";
import { gatewayUrl } from "./connection.ts";
import { type CommandContext, show, table } from "./console.ts";

/** The models on offer that match, with prices in USD per million tokens, as the models page finds them. */
export async function listModels(
  { search = "", context: tokens, maxInputUsd, can = [], sort = "", ...options }: ModelOptions,
  context: CommandContext,
): Promise<void> {
  const client = ownerClient(options, context) ?? new Client(context, gatewayUrl(options, context), null);
  const { data } = await client.get<List<EntryAnswer>>("/v1/catalog");
  const query = { context: String(tokens ?? ""), price: String(maxInputUsd ?? ""), can: can.join(" ") };
  const found = findModels(data, { search, sort, ...query });
  show(context, options.json, { data: found }, [
    ...table(
      ["id", "input USD", "output USD", "context", "free", "available"],
      found.map(({ id, price, context_length, free, available }) => [
        id,
        price?.input ?? null,
        price?.output ?? null,
        context_length,
        free ? "yes" : "",
        available ? "yes" : "no",
      ]),
    ),
  ]);
}

interface ModelOptions extends OwnerOptions {
  readonly search?: string | undefined;
  readonly context?: number | undefined;
  readonly maxInputUsd?: number | undefined;
  readonly can?: readonly string[] | undefined;
  readonly sort?: string | undefined;
}
