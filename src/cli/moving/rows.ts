import type { QuirkRow } from "../../config/quirks.ts";
import type { UsdPrice } from "./known-models.ts";

export interface HostRow {
  readonly id: string;
  readonly base_url: string;
  readonly speaks: readonly string[];
  readonly [setting: string]: unknown;
}

interface RouteRow {
  host: string;
  readonly model: string;
  price?: UsdPrice;
  quirks?: QuirkRow;
}

export interface ModelRow {
  readonly id: string;
  aliases?: string[];
  fallbacks?: string[];
  context_length: number;
  max_output_tokens: number;
  readonly [ability: string]: unknown;
  readonly price: UsdPrice;
  routes: RouteRow[];
}
