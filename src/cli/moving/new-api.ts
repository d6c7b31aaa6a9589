import { Database } from "bun:sqlite";
import { MAX_KEYS } from "../../config/host-keys.ts";
import { type EpochMs, isoTime } from "../../units/clock.ts";
import { decimalUsd, MAX_NANO_USD, type NanoUsd, usdFromNano } from "../../units/usd.ts";
import { messageOf } from "../console.ts";
import { CommandFailure, EXIT } from "../failure.ts";
import type { MovedCustomer, MovedKey } from "./customer.ts";
import type { Draft } from "./draft.ts";
import { type Fields, fieldsOf, jsonOf, numberOf, textOf } from "./fields.ts";
import type { UsdPrice } from "./known-models.ts";
import { NO_SHARE } from "./pools.ts";
import { addressOf, NEW_API_PROVIDERS } from "./providers.ts";

/** What new-api keeps in its database: channels, users, tokens and options (model/*.go). */
interface NewApi {
  readonly channels: readonly Fields[];
  readonly users: readonly Fields[];
  readonly tokens: readonly Fields[];
  readonly options: Fields;
}

/** Reads new-api's SQLite file, and changes nothing in it. */
export function readNewApi(file: string): NewApi {
  let database: Database | null = null;
  try {
    database = new Database(file, { readonly: true });
    const rows = (table: string) => database!.query<Fields, []>(`select * from ${table}`).all();
    const options = rows("options").map(({ key, value }) => [String(key), value]);
    return {
      channels: rows("channels"),
      users: rows("users"),
      tokens: rows("tokens"),
      options: Object.fromEntries(options),
    };
  } catch (error) {
    throw new CommandFailure(
      EXIT.usage,
      `${file} is not new-api's SQLite database: ${messageOf(error)}`,
      "It is one-api.db in new-api's data folder. A MySQL or PostgreSQL database has to be copied into SQLite first.",
    );
  } finally {
    database?.close();
  }
}

const ENABLED = 1;
/** A channel may also list models for images, sound and vectors. */
const NO_TEXT =
  /embed|whisper|tts|dall-e|image|midjourney|mj_|suno|rerank|moderation|realtime|audio|video|sora|veo/i;

/** Channels as hosts and routes: the highest priority first, then the heaviest. */
export function readChannels({ channels, options }: NewApi, draft: Draft): void {
  const of = (channel: Fields, name: string) => numberOf(channel[name]) ?? 0;
  const sorted = [...channels].sort(
    (a, b) => of(b, "priority") - of(a, "priority") || of(b, "weight") - of(a, "weight"),
  );
  const prices = pricesOf(options);
  for (const channel of sorted) readChannel(channel, prices, draft);
  draft.pool();
  const factors = groupFactors(options);
  if (factors.size > 0)
    draft.settings.price_lists = Object.fromEntries(
      [...factors].map(([group, factor]) => [group, [{ model: "*", factor }]]),
    );
  for (const name of Object.keys(options))
    if (!OPTIONS_READ.has(name) && textOf(options[name]) !== null)
      draft.leaveOut(`options.${name}`, "there is no such setting here");
}

const OPTIONS_READ = new Set([
  ...["QuotaPerUnit", "ModelRatio", "CompletionRatio", "CacheRatio", "ModelPrice", "GroupRatio"],
]);

function readChannel(channel: Fields, prices: Prices, draft: Draft): void {
  const at = `channels[${channel.id}] ${textOf(channel.name) ?? ""}`.trim();
  if (channel.status !== ENABLED) return draft.leaveOut(at, "it is disabled");
  const provider = NEW_API_PROVIDERS[numberOf(channel.type) ?? 0];
  if (provider === undefined)
    return draft.leaveOut(at, `channels of type ${channel.type} are not served here; list its host by hand`);
  const base = textOf(channel.base_url);
  if (base === null && provider.address === null) return draft.leaveOut(at, "it has no address");
  for (const name of ["param_override", "header_override", "status_code_mapping"])
    if (!["", "{}", "null"].includes(textOf(channel[name]) ?? ""))
      draft.leaveOut(`${at}: ${name}`, "requests are not changed by their channel here");
  const groups = (textOf(channel.group) ?? "default").split(",");
  if (!groups.includes("default"))
    draft.note(at, `it served the groups ${groups.join(", ")} alone, and serves everybody here`);
  const keys = keysOf(channel, at, draft);
  const weight = numberOf(channel.weight) ?? 0;
  const share = {
    ...NO_SHARE,
    order: -(numberOf(channel.priority) ?? 0),
    weight: weight > 0 ? weight / Math.max(1, keys.length) : null,
  };
  if (keys.length > MAX_KEYS)
    draft.leaveOut(at, `it has ${keys.length} keys, of which the first ${MAX_KEYS} are carried`);
  const mapping = fieldsOf(jsonOf(channel.model_mapping));
  for (const name of (textOf(channel.models) ?? "").split(",").map((one) => one.trim())) {
    const from = `${at}: ${name}`;
    if (name === "") continue;
    if (NO_TEXT.test(name)) draft.leaveOut(from, "only text is generated here");
    else if (prices.perCall.has(name))
      draft.leaveOut(from, "it is priced by the call, and prices here are by the token");
    else
      for (const key of keys.length === 0 ? [null] : keys.slice(0, MAX_KEYS))
        draft.add({
          name,
          provider,
          address: base === null ? null : addressOf(base, provider),
          key,
          model: textOf(mapping[name]) ?? name,
          knownAs: name,
          price: prices.of(name, draft),
          share,
          from,
        });
  }
}

/** A channel has a key a line, some of which may be switched off (`channel_info`, by their number). */
function keysOf(channel: Fields, at: string, draft: Draft): string[] {
  const states = fieldsOf(fieldsOf(jsonOf(channel.channel_info)).multi_key_status_list);
  const keys = (textOf(channel.key) ?? "").split("\n").map((key) => key.trim());
  return keys.filter((key, number) => {
    const isOff = (numberOf(states[number]) ?? ENABLED) !== ENABLED;
    if (isOff) draft.leaveOut(at, `its key ${number + 1} is disabled`);
    return key !== "" && !isOff;
  });
}

interface Prices {
  readonly perCall: ReadonlySet<string>;
  /** Null where the source has its built-in one, or none. */
  of(name: string, draft: Draft): UsdPrice | null;
}

/** A ratio of 1 costs one unit of quota a token: USD 2 per million at 500,000 units to the dollar. */
function pricesOf(options: Fields): Prices {
  const [ratios, completions, caches] = ["ModelRatio", "CompletionRatio", "CacheRatio"].map((name) =>
    fieldsOf(jsonOf(options[name])),
  ) as [Fields, Fields, Fields];
  const usd = (units: number) => Number(((units * 1e6) / quotaPerUnit(options)).toFixed(9));
  return {
    perCall: new Set(Object.keys(fieldsOf(jsonOf(options.ModelPrice)))),
    of(name, draft) {
      const ratio = numberOf(ratios[name]);
      if (ratio === null) return null;
      const known = draft.known.price(name, null);
      const built = known === null || known.input === 0 ? 1 : known.output / known.input;
      const cache = numberOf(caches[name]);
      return {
        input: usd(ratio),
        output: usd(ratio * (numberOf(completions[name]) ?? built)),
        ...(cache === null ? {} : { cache_read: usd(ratio * cache) }),
      };
    },
  };
}

/** Groups that do not pay the models' own prices. */
function groupFactors(options: Fields): Map<string, number> {
  const ratios = Object.entries(fieldsOf(jsonOf(options.GroupRatio)));
  return new Map(
    ratios.flatMap(([group, ratio]) => {
      const factor = numberOf(ratio);
      return factor === null || factor === 1 || factor <= 0 ? [] : [[group, Number(factor.toFixed(6))]];
    }),
  );
}

const DEFAULT_QUOTA = 500_000;

function quotaPerUnit(options: Fields): number {
  const units = numberOf(options.QuotaPerUnit) ?? DEFAULT_QUOTA;
  if (Number.isSafeInteger(units) && units > 0) return units;
  throw new CommandFailure(EXIT.usage, `QuotaPerUnit is ${units}, which is no whole number of units`);
}

/** Users as balances with their quota as credit, to the nano-dollar, and tokens as keys. */
export function readUsers(source: NewApi, draft: Draft, now: EpochMs): MovedCustomer[] {
  const reader = new UserReader(source, draft, now);
  return source.users.flatMap((user) => reader.read(user));
}

class UserReader {
  private readonly units: bigint;
  private readonly factors: ReadonlyMap<string, number>;

  constructor(
    private readonly source: NewApi,
    private readonly draft: Draft,
    private readonly now: EpochMs,
  ) {
    this.units = BigInt(quotaPerUnit(source.options));
    this.factors = groupFactors(source.options);
  }

  read(user: Fields): MovedCustomer[] {
    const { draft } = this;
    const name = textOf(user.username) ?? String(user.id);
    const from = `users[${user.id}] ${name}`;
    const quota = numberOf(user.quota) ?? 0;
    if (user.deleted_at) return this.withoutUser(from, `it was deleted, with ${this.usdText(quota)} left`);
    const isSuspended = user.status !== ENABLED;
    const own = this.source.tokens.filter((token) => token.user_id === user.id && !token.deleted_at);
    const keys = own.flatMap((token) => this.readToken(token, String(user.group ?? "default")));
    if (quota <= 0 && keys.length === 0)
      return this.withoutUser(from, "it has neither quota nor a token that works");
    const credit = this.nano(Math.max(0, quota), from);
    if (credit > MAX_NANO_USD)
      return this.withoutUser(from, `${this.usdText(quota)} is more than a balance can have`);
    if (quota < 0)
      draft.leaveOut(`${from}: quota`, `it owes ${this.usdText(-quota)}, and a balance is never below 0`);
    if (isSuspended) draft.note(from, "it is disabled there, and suspended here");
    return [{ source: `user:${user.id}`, name, credit, isSuspended, keys }];
  }

  private withoutUser(from: string, why: string): [] {
    this.draft.leaveOut(from, why);
    return [];
  }

  private readToken(token: Fields, userGroup: string): MovedKey[] {
    const { draft, now, factors } = this;
    const name = textOf(token.name) ?? "";
    const from = `tokens[${token.id}] ${name}`.trim();
    const expires = numberOf(token.expired_time) ?? -1;
    const remaining = numberOf(token.remain_quota) ?? 0;
    const isUnlimited = Boolean(token.unlimited_quota);
    const why =
      token.status !== ENABLED
        ? "it does not work there"
        : expires !== -1 && expires * 1_000 <= now
          ? "it has expired"
          : !isUnlimited && remaining <= 0
            ? "its quota is used up"
            : null;
    const models = why === null ? this.allowedModels(token, from) : null;
    if (why !== null || models?.length === 0) {
      draft.leaveOut(from, why ?? "none of the models that it may call is carried");
      return [];
    }
    if (textOf(token.allow_ips) !== null)
      draft.leaveOut(
        `${from}: allow_ips`,
        "keys work from every address here; a proxy in front can refuse others",
      );
    const group = textOf(token.group) ?? userGroup;
    return [
      {
        source: `token:${token.id}`,
        name,
        dailyLimitUsd: null,
        monthlyLimitUsd: null,
        allowedModels: models,
        expiresAt: expires === -1 ? null : isoTime((expires * 1_000) as EpochMs),
        priceList: factors.has(group) ? group : null,
        budget: isUnlimited ? null : { capUsd: usdFromNano(this.nano(remaining, from)), window: "total" },
      },
    ];
  }

  /** Null: all. */
  private allowedModels(token: Fields, from: string): string[] | null {
    if (!token.model_limits_enabled) return null;
    const names = (textOf(token.model_limits) ?? "").split(",").filter((name) => name !== "");
    return names.flatMap((name) => {
      const id = this.draft.idOf(name);
      if (id === null) this.draft.leaveOut(`${from}: model_limits`, `${name} is not carried`);
      return id === null ? [] : [id];
    });
  }

  private nano(quota: number, from: string): NanoUsd {
    const nano = BigInt(quota) * 1_000_000_000n;
    if (nano % this.units !== 0n)
      this.draft.note(from, "its quota is no whole number of nano-dollars, and rounded down");
    return Number(nano / this.units) as NanoUsd;
  }

  private usdText(quota: number): string {
    return `${decimalUsd(Number((BigInt(quota) * 1_000_000_000n) / this.units) as NanoUsd)} USD`;
  }
}
