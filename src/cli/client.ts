import type { ErrorAnswer, List } from "../api/schema.ts";
import { adminToken, type ConnectionOptions, gatewayUrl, refuseClearText } from "./connection.ts";
import { isRefusedConnection, whyUnanswered } from "./connection-errors.ts";
import { type CommandContext, printable } from "./console.ts";
import { CommandFailure, EXIT } from "./failure.ts";

export function adminClient(options: ConnectionOptions, context: CommandContext): Client {
  const url = gatewayUrl(options, context);
  return new Client(context, url, adminToken(options, url, context), null, "admin");
}

export interface OwnerOptions extends ConnectionOptions {
  /**
   * The recovery secret of a balance, or a session: commands then act for its owner, and need no admin token.
   */
  readonly owner?: string | undefined;
  /** For an account's session: its chosen balance. */
  readonly balance?: string | undefined;
}

/** Null where nobody has named an owner's credential. */
export function ownerClient(options: OwnerOptions, context: CommandContext): Client | null {
  const owner = options.owner ?? (context.env.GATEWAY_OWNER || null);
  if (owner === null) return null;
  const url = gatewayUrl(options, context);
  refuseClearText(url, options);
  return new Client(context, url, owner, options.balance ?? null);
}

/** The path of an operation, with ids or names in it: they may hold any character. */
export const path = (parts: TemplateStringsArray, ...ids: string[]): string =>
  String.raw({ raw: parts }, ...ids.map(encodeURIComponent));

/** Members of a list's query; those that are undefined are left out. */
export type Filters = Readonly<Record<string, string | undefined>>;

/** The gateway's HTTP operations, with one credential. */
export class Client {
  constructor(
    private readonly context: Pick<CommandContext, "fetch">,
    readonly url: string,
    /** Null for operations that need none. */
    private readonly bearer: string | null,
    /** For an account's session that has several. */
    private readonly balance: string | null = null,
    /** How the paths of its operations begin. */
    readonly as: "admin" | "v1" = "v1",
  ) {}

  /** For an account's session: acts on this one of its balances. Operators name balances in paths. */
  onBalance(balance: string | undefined): Client {
    if (this.as === "admin" || balance === undefined) return this;
    return new Client(this.context, this.url, this.bearer, balance);
  }

  get<Answer>(path: string): Promise<Answer> {
    return this.call("GET", path);
  }

  patch<Answer>(path: string, body: object): Promise<Answer> {
    return this.call("PATCH", path, body);
  }

  post<Answer>(path: string, body?: object): Promise<Answer> {
    return this.call("POST", path, body);
  }

  delete<Answer>(path: string, body?: object): Promise<Answer> {
    return this.call("DELETE", path, body);
  }

  /** Every row of a list, page by page; `onPage` receives how many there are so far. */
  async all<Row extends { readonly id: string }>(
    path: string,
    most: number,
    onPage: (rows: number) => void,
    filters: Filters = {},
  ): Promise<{ readonly rows: Row[]; readonly more: boolean }> {
    const rows: Row[] = [];
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries(filters)) if (value !== undefined) query.set(name, value);
    for (;;) {
      query.set("limit", String(Math.min(PAGE, most - rows.length)));
      const page: ListPage<Row> = await this.get(`${path}?${query}`);
      rows.push(...page.data);
      onPage(rows.length);
      const before = nextOf(page);
      if (before === null || rows.length >= most) return { rows, more: page.has_more };
      query.set("before", before);
    }
  }

  /** A list from its newest row to its last, a page at a time. */
  async *pages<Row extends { readonly id: string }>(path: string): AsyncGenerator<readonly Row[]> {
    let before: string | null = null;
    do {
      const query: string = `?limit=${PAGE}${before === null ? "" : `&before=${encodeURIComponent(before)}`}`;
      const page: ListPage<Row> = await this.get(path + query);
      yield page.data;
      before = nextOf(page);
    } while (before !== null);
  }

  private async call<Answer>(method: string, path: string, body?: object): Promise<Answer> {
    const { status, text, receipt } = await this.send(method, path, body);
    const json = parsed(text);
    if (status >= 200 && status < 300 && json !== undefined) return json as Answer;
    const { message, code } = (json as Partial<ErrorAnswer> | undefined)?.error ?? {};
    if (message === undefined) {
      throw new CommandFailure(
        EXIT.refused,
        `${method} ${this.url}${path} answered ${status}, but not as a gateway does`,
        "Check that --url or GATEWAY_URL is the gateway's address, without /v1.",
        status >= 500,
      );
    }
    throw new CommandFailure(
      EXIT.refused,
      // Each mistake of a configuration stands on a line of its own.
      message.split("\n").map(printable).join("\n"),
      NEXT[code ?? ""] ?? answered(status, receipt),
      status >= 500,
    );
  }

  private async send(method: string, path: string, body: object | undefined): Promise<Sent> {
    if (/[^\x21-\x7e]/.test(this.bearer ?? "")) {
      throw new CommandFailure(
        EXIT.usage,
        "the token or secret has a space, a line break or a letter that none has",
        "Check GATEWAY_OWNER, --owner and GATEWAY_ADMIN_TOKEN.",
      );
    }
    try {
      const response = await this.context.fetch(this.url + path, {
        method,
        // A redirect would carry the credential to wherever it points.
        redirect: "manual",
        signal: AbortSignal.timeout(ANSWER_MS),
        headers: {
          ...(this.bearer === null ? {} : { authorization: `Bearer ${this.bearer}` }),
          ...(this.balance === null ? {} : { "x-gateway-balance": this.balance }),
          ...(body === undefined ? {} : { "content-type": "application/json" }),
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      const text = await response.text();
      return { status: response.status, text, receipt: response.headers.get("x-gateway-receipt") };
    } catch (error) {
      throw new CommandFailure(
        EXIT.unreachable,
        `no answer from ${this.url}: ${whyUnanswered(error)}`,
        "Check that the gateway runs there, or set --url or GATEWAY_URL; `gateway doctor` checks this machine.",
        !isRefusedConnection(error),
      );
    }
  }
}

/** Commands leave no receipts. But if something broke, the log has it under this one. */
const answered = (status: number, receipt: string | null): string =>
  status < 500 || receipt === null
    ? `The gateway answered ${status}.`
    : `The gateway answered ${status}; its log says more, under ${receipt}.`;

type ListPage<Row> = List<Row> & { readonly next_before?: string | null };

/** A page may be empty and not the last. */
const nextOf = <Row extends { readonly id: string }>(page: ListPage<Row>): string | null =>
  page.has_more ? (page.next_before ?? page.data.at(-1)?.id ?? null) : null;

interface Sent {
  readonly status: number;
  readonly text: string;
  readonly receipt: string | null;
}

const NEXT: Readonly<Record<string, string>> = {
  invalid_api_key:
    "The credential was refused. The admin token is the running gateway's GATEWAY_ADMIN_TOKEN, or in the file admin-token of its data folder.",
  missing_api_key: "Set GATEWAY_OWNER, or use --owner, to ask with a balance's recovery secret or a session.",
};

/** As many rows as each list gives at once. */
const PAGE = 100;
/** An audit of large books takes a while. */
const ANSWER_MS = 120_000;

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
