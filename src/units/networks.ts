import { BlockList, isIP } from "node:net";

/** Addresses and blocks of them, such as the proxies that are believed about the addresses they saw. */
export class Networks {
  /** As they were written. */
  readonly rows: string[] = [];
  private readonly blocks = new BlockList();

  /** Takes a row like `10.0.0.0/8`, `fd00::/8` or `192.0.2.7`; false when it is none. */
  add(row: string): boolean {
    const [address = "", bits, ...more] = row.split("/");
    const version = isIP(address);
    if (version === 0 || address.includes("%") || more.length > 0) return false;
    const most = version === 4 ? 32 : 128;
    if (bits !== undefined && !(/^\d{1,3}$/.test(bits) && Number(bits) <= most)) return false;
    this.blocks.addSubnet(address, bits === undefined ? most : Number(bits), familyOf(version));
    this.rows.push(row);
    return true;
  }

  has(address: string): boolean {
    const version = isIP(address);
    return version !== 0 && this.blocks.check(address, familyOf(version));
  }
}

const familyOf = (version: number) => (version === 4 ? "ipv4" : "ipv6");
