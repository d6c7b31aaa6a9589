import type { ErrorAnswer } from "../api/schema.ts";

/** Query parameters; empty ones are left out. */
export type Query = Readonly<Record<string, string>>;

export function withQuery(path: string, query: Query): string {
  const given = Object.entries(query).filter(([, value]) => value !== "");
  return given.length === 0 ? path : `${path}?${new URLSearchParams(given)}`;
}

/**
 * The gateway's documented API, called the way any other client calls it. Addresses are relative to the page,
 * because the gateway may be mounted beneath a path.
 */
export class Api {
  constructor(
    /** Bearer token; null when the browser's session cookie speaks, or nobody does. */
    private readonly credential: string | null,
    /** The chosen balance of an account that has several. Null: lists cover all of them. */
    private readonly balance: string | null = null,
    /** Called when the credential opens nothing any more. */
    private readonly onEnded: () => void = () => {},
    private readonly more: Readonly<Record<string, string>> = {},
  ) {}

  /** The same, with more headers. */
  having(more: Readonly<Record<string, string>>): Api {
    return new Api(this.credential, this.balance, this.onEnded, { ...this.more, ...more });
  }

  /** The same credential, for one balance of the account. */
  on(balance: string | null, onEnded = this.onEnded): Api {
    return new Api(this.credential, balance, onEnded);
  }

  get<T>(path: string): Promise<T> {
    return this.send<T>("GET", path);
  }

  post<T>(path: string, body?: unknown): Promise<T> {
    return this.send<T>("POST", path, body);
  }

  patch<T>(path: string, body: unknown): Promise<T> {
    return this.send<T>("PATCH", path, body);
  }

  delete<T>(path: string, body?: unknown): Promise<T> {
    return this.send<T>("DELETE", path, body);
  }

  /** The response itself, once it is known to be no refusal. */
  async open(method: string, path: string, body: unknown, signal?: AbortSignal): Promise<Response> {
    const response = await fetch(path, {
      method,
      headers: {
        ...(this.credential === null ? {} : { authorization: `Bearer ${this.credential}` }),
        ...(this.balance === null ? {} : { "x-gateway-balance": this.balance }),
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...this.more,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...(signal === undefined ? {} : { signal }),
      cache: "no-store",
    });
    if (response.status === 401) this.onEnded();
    if (!response.ok) throw await refusalOf(response);
    return response;
  }

  private async send<T>(method: string, path: string, body?: unknown): Promise<T> {
    const response = await this.open(method, path, body);
    return (response.status === 204 ? undefined : await response.json()) as T;
  }
}

/** The gateway said no. */
export class ApiRefusal extends Error {
  override name = "ApiRefusal";
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly param: string | null,
    readonly receipt: string | null,
    /** What a wallet may sign, where paying would help. */
    readonly offer: string | null,
  ) {
    super(message);
  }
}

/** For `catch`: replaces a 401 by an error with this message. */
export const onUnauthorized =
  (message: string) =>
  (error: unknown): never => {
    throw error instanceof ApiRefusal && error.status === 401 ? new Error(message) : error;
  };

async function refusalOf(response: Response): Promise<ApiRefusal> {
  const receipt = response.headers.get("x-gateway-receipt");
  const { error } = (await response.json().catch(() => ({}))) as { error?: Partial<ErrorAnswer["error"]> };
  return new ApiRefusal(
    response.status,
    error?.code ?? "unknown",
    error?.message ?? `The gateway answered ${response.status}.`,
    error?.param ?? null,
    receipt,
    response.headers.get("payment-required"),
  );
}

/** Messages end in a link to the errors reference, which the page shows as a link of its own. */
export const sentenceOf = (error: unknown): string =>
  error instanceof ApiRefusal
    ? error.message.replace(/\s*(See )?\S*\/docs\/errors#\S+$/, "")
    : error instanceof TypeError
      ? "The gateway cannot be reached. Check the connection and try again."
      : error instanceof Error
        ? error.message
        : String(error);
