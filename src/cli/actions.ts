import type { List } from "../api/schema.ts";
import { adminClient, type Client, type Filters, type OwnerOptions, ownerClient } from "./client.ts";
import type { ConnectionOptions } from "./connection.ts";
import { type Columns, type CommandContext, show, tableOf } from "./console.ts";
import { CommandFailure, EXIT } from "./failure.ts";
import { withProgress } from "./progress.ts";

/** The result of a command: a value for programs, lines for people, and the failure to end with, if there is one. */
export type CommandResult = readonly [
  value: unknown,
  lines: readonly string[],
  failure?: CommandFailure | null,
];

type Run<Args extends unknown[], Options> = (
  client: Client,
  ...args: [...Args, Options]
) => Promise<CommandResult>;
type WithJson = { readonly json: boolean };
/** As commander calls it: with the arguments, the options and the command. */
type CommandAction<Args extends unknown[], Options> = (...args: [...Args, Options, unknown]) => Promise<void>;

/** A command that calls the running gateway as its operator. */
export const asOperator = <Args extends unknown[], Options extends ConnectionOptions & WithJson>(
  context: CommandContext,
  run: Run<Args, Options>,
): CommandAction<Args, Options> => action(context, run, adminClient);

/** A command that calls the running gateway as an owner, who has to be named. */
export const asOwner = <Args extends unknown[], Options extends OwnerOptions & WithJson>(
  context: CommandContext,
  run: Run<Args, Options>,
): CommandAction<Args, Options> =>
  action(context, run, (options) => {
    const client = ownerClient(options, context);
    if (client !== null) return client;
    throw new CommandFailure(
      EXIT.usage,
      "there is no owner's credential",
      "Set GATEWAY_OWNER to the recovery secret of a balance, or to a session.",
    );
  });

/** As the owner who is named; else as the operator. */
export const asEither = <Args extends unknown[], Options extends OwnerOptions & WithJson>(
  context: CommandContext,
  run: Run<Args, Options>,
): CommandAction<Args, Options> =>
  action(context, run, (options) => ownerClient(options, context) ?? adminClient(options, context));

const action =
  <Args extends unknown[], Options extends WithJson>(
    context: CommandContext,
    run: Run<Args, Options>,
    clientFor: (options: Options, context: CommandContext) => Client,
  ): CommandAction<Args, Options> =>
  async (...called) => {
    const args = called.slice(0, -1) as [...Args, Options];
    const options = args.at(-1) as Options;
    const [value, lines, failure = null] = await run(clientFor(options, context), ...args);
    show(context, options.json, value, lines);
    if (failure !== null) throw failure;
  };

/** A short list of the gateway's as a table; `none` is the line for an empty list. */
export async function rowsAt<Row>(
  client: Client,
  path: string,
  columns: Columns<Row>,
  none?: string,
): Promise<CommandResult> {
  const { data } = await client.get<List<Row>>(path);
  return [{ data }, data.length === 0 && none !== undefined ? [none] : tableOf(columns, data)];
}

interface Listing<Row> {
  readonly path: string;
  readonly filters: Filters;
  /** What the rows are. */
  readonly noun: string;
  readonly columns: Columns<Row>;
  /** Lines behind the table. */
  notes?(rows: readonly Row[]): readonly string[];
}

/** A list of up to `--limit` rows, which are counted on the terminal while they are read. */
export async function pagesAt<Row extends { readonly id: string }>(
  client: Client,
  context: CommandContext,
  { limit }: { readonly limit: number },
  { path, filters, noun, columns, notes = () => [] }: Listing<Row>,
): Promise<CommandResult> {
  const { rows, more } = await withProgress(context, (progress) =>
    client.all<Row>(path, limit, (count) => progress(count, null, noun), filters),
  );
  return [
    { data: rows, has_more: more },
    [
      ...tableOf(columns, rows),
      ...notes(rows),
      ...(more ? [`… and more: raise --limit above ${limit} to see them`] : []),
    ],
  ];
}
