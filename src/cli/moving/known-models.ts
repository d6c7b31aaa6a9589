import { type KnownModel, knownModels, knownPrice } from "../../config/model-catalogue.ts";
import { priceRow } from "../../config/price-settings.ts";
import { PRESETS, type Preset } from "../../config/provider-presets.ts";
import type { EpochMs } from "../../units/clock.ts";

/** USD per million tokens, as a configuration file has them. */
export type UsdPrice = Readonly<Record<string, unknown>> & {
  readonly input: number;
  readonly output: number;
};

/** What the catalogue packages know of models, for sources that name models without limits or prices. */
export class KnownModels {
  private readonly byPreset = new Map<string, readonly KnownModel[]>();

  constructor(private readonly at: EpochMs) {}

  of(preset: Preset): readonly KnownModel[] {
    return this.byPreset.getOrInsertComputed(preset.id, () => knownModels(preset, this.at));
  }

  /** By its name at the provider, else at any other. */
  find(name: string, preset: Preset | null): KnownModel | null {
    const presets = preset === null ? PRESETS : [preset, ...PRESETS.filter((one) => one !== preset)];
    for (const one of presets) {
      const known = this.of(one).find(
        ({ id, wireName }) => wireName === name || id.slice(id.indexOf("/") + 1) === name,
      );
      if (known !== undefined) return known;
    }
    return null;
  }

  /** Also of models whose limits nobody knows. */
  price(name: string, preset: Preset | null): UsdPrice | null {
    const price = this.find(name, preset)?.price ?? knownPrice(name, this.at);
    return price === null ? null : priceRow(price);
  }
}
